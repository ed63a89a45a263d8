"""The graphs of a table: loaded where they are, remembered by the records where they are not."""

from functools import lru_cache
from pathlib import Path

from torch_geometric.data import Data

from nfgnn.data import BUILT_IN, REGISTRY, is_available, load_dataset
from nfgnn.errors import UserError
from nfgnn.training.records.database import Records
from nfgnn.training.run_folder import fingerprint

_MOST_MEGABYTES = 100
_MOST_NODES = 10_000_000


@lru_cache(maxsize=3)
def graph(dataset: str, root: Path | None) -> Data:
    """A graph by name or path. Large ones are not fetched unasked, and too large ones are refused with a hint."""
    entry = REGISTRY.get(dataset)
    if entry is not None and entry.nodes > _MOST_NODES:
        raise UserError(
            f"{entry.title} does not fit into memory: see `nfgnn precompute {dataset} --help`"
        )
    if entry is None or is_available(entry, root):
        return load_dataset(dataset, root=root)
    try:
        if entry.megabytes <= _MOST_MEGABYTES:
            return load_dataset(dataset, root=root)
    except UserError:
        pass  # what went wrong, and where files would go on this machine, is told by the command named below
    raise UserError(
        f"{entry.title} is not here: `nfgnn datasets {dataset}` fetches it ({entry.megabytes:,.0f} MB), "
        "or name its folder with --root"
    )


@lru_cache(maxsize=256)
def facts(dataset: str, root: Path | None) -> tuple[str, int]:
    """Fingerprint of a graph, and its size: nodes and edges."""
    data = graph(dataset, root)
    return fingerprint(data), int(data.num_nodes) + int(data.num_edges)


def known_fingerprint(dataset: str, root: Path | None, records: Records) -> str | None:
    """The fingerprint of a graph that is here, else of the one of this name that the records know, else ``None``."""
    entry = REGISTRY.get(dataset)
    if (
        dataset in BUILT_IN
        or entry is None
        or (entry.nodes <= _MOST_NODES and is_available(entry, root))
    ):
        return facts(dataset, root)[0]
    return next(iter(records.fingerprints(dataset)), None)
