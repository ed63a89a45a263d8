"""The graphs of a table: loaded where they are, remembered by the records where they are not."""

from functools import lru_cache
from pathlib import Path

from nfgnn.data import BUILT_IN, REGISTRY, is_available
from nfgnn.errors import UserError
from nfgnn.training import Graph, Records

_MOST_MEGABYTES = 100
_MOST_NODES = 10_000_000


@lru_cache(maxsize=256)
def graph(dataset: str, root: Path | None) -> Graph:
    """Return a graph by name or path, or raise an error if it is not available.

    Large graphs are not downloaded without being asked for.
    """
    source = Graph.named(dataset, root)
    entry = REGISTRY.get(dataset)
    if entry is not None and entry.nodes > _MOST_NODES:
        raise UserError(
            f"{entry.title} does not fit into memory: see `nfgnn precompute {dataset} --help`"
        )
    if entry is None or is_available(entry, root):
        return source
    try:
        if entry.megabytes <= _MOST_MEGABYTES and source.data is not None:
            return source
    except UserError:
        pass  # the command below reports what went wrong
    raise UserError(
        f"{entry.title} is not here: `nfgnn datasets {dataset}` fetches it ({entry.megabytes:,.0f} MB), "
        "or name its folder with --root"
    )


def known_fingerprint(dataset: str, root: Path | None, records: Records) -> str | None:
    """The fingerprint of a graph that is here, else of the one of this name that the records know, else ``None``."""
    entry = REGISTRY.get(dataset)
    if (
        dataset in BUILT_IN
        or entry is None
        or (entry.nodes <= _MOST_NODES and is_available(entry, root))
    ):
        return graph(dataset, root).fingerprint
    return next(iter(records.fingerprints(dataset)), None)
