"""The nodes that a page holds, and the neighbours that it draws around each of them."""

from dataclasses import dataclass

import numpy as np

from nfgnn.analysis import adjacency_matrix

MAX_NEIGHBOURS = 32


@dataclass(frozen=True)
class Sample:
    """The nodes of a page. Neighbours are given as positions in ``nodes``."""

    nodes: np.ndarray
    """Indices of nodes in the graph: the ``shown`` nodes in ascending order, then nodes that only
    occur as their neighbours."""
    shown: int
    """Number of nodes on the map."""
    starts: np.ndarray
    """Neighbours of the i-th shown node: ``neighbours[starts[i] : starts[i + 1]]``."""
    neighbours: np.ndarray


def sample_nodes(
    edge_index: np.ndarray,
    n: int,
    max_nodes: int,
    max_neighbours: int = MAX_NEIGHBOURS,
    seed: int = 0,
    always: np.ndarray | None = None,
) -> Sample:
    """Return all nodes or a random sample, each with a random sample of its neighbours.

    Args:
        edge_index: edges in both directions.
        n: number of nodes of the graph.
        max_nodes: maximum number of nodes on the map.
        max_neighbours: maximum number of neighbours per node.
        seed: seed of the samples.
        always: nodes that every sample contains, as far as ``max_nodes`` allows.
    """
    rng = np.random.default_rng(seed)
    shown = np.arange(n)
    if n > max_nodes:
        first = np.empty(0, np.int64) if always is None else always
        # The first occurrence of every node counts, so the order of `always` is a priority.
        order = np.concatenate([first, rng.permutation(n)])
        _, occurrence = np.unique(order, return_index=True)
        shown = np.sort(order[np.sort(occurrence)[:max_nodes]])
    adjacency = adjacency_matrix(edge_index, n, bool)[shown]
    row = np.repeat(np.arange(len(shown)), np.diff(adjacency.indptr))
    # Shuffle the neighbours of every node and keep the first ones.
    shuffled = np.lexsort((rng.random(len(row)), row))
    rank = np.arange(len(row)) - adjacency.indptr[row]
    kept = shuffled[rank < max_neighbours]
    row = row[kept]
    col = adjacency.indices[kept].astype(np.int64)
    order = np.lexsort((col, row))
    row = row[order]
    col = col[order]
    nodes = np.concatenate([shown, np.setdiff1d(col, shown)])
    position = np.empty(n, np.int64)
    position[nodes] = np.arange(len(nodes))
    degree = np.bincount(row, minlength=len(shown))
    starts = np.concatenate([[0], np.cumsum(degree)])
    return Sample(nodes, len(shown), starts, position[col])
