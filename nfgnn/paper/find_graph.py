"""Find the graphs of tables and searches: in files, or by the records of their runs."""

from functools import lru_cache
from pathlib import Path

from nfgnn.data import BUILT_IN, REGISTRY, is_available
from nfgnn.errors import UserError
from nfgnn.training import Graph, Records

_MAX_DOWNLOAD_MEGABYTES = 100
_MAX_NODES = 10_000_000


@lru_cache(maxsize=256)
def find_graph(dataset: str, root: Path | None) -> Graph:
    """Return a graph by name or path, or raise an error if it is not available.

    Small graphs are downloaded. Large ones are not, because nobody has asked for it.
    """
    graph = Graph.named(dataset, root)
    entry = REGISTRY.get(dataset)
    if entry is None:
        return graph
    if entry.nodes > _MAX_NODES:
        raise UserError(
            f"{entry.title} does not fit into memory: see `nfgnn precompute {dataset} --help`"
        )
    if is_available(entry, root):
        return graph
    try:
        if entry.megabytes <= _MAX_DOWNLOAD_MEGABYTES and graph.data is not None:
            return graph
    except UserError:
        pass  # the command below reports what went wrong
    raise UserError(
        f"{entry.title} is not available: `nfgnn datasets {dataset}` downloads it "
        f"({entry.megabytes:,.0f} MB), or pass its folder with --root"
    )


def find_fingerprint(dataset: str, root: Path | None, records: Records) -> str | None:
    """Return the fingerprint of a graph.

    If the graph is not available, it is that of the graph of this name with the most records;
    ``None`` if there are none.
    """
    entry = REGISTRY.get(dataset)
    loadable = (
        dataset in BUILT_IN
        or entry is None
        or (entry.nodes <= _MAX_NODES and is_available(entry, root))
    )
    if loadable:
        return find_graph(dataset, root).fingerprint
    return next(iter(records.fingerprints(dataset)), None)
