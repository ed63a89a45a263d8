"""Which nodes a page carries, and the neighbours that are drawn around each of them."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

MOST_NEIGHBOURS = 32


@dataclass(frozen=True)
class Sample:
    """The nodes of a page. Links speak of positions in ``nodes``."""

    nodes: np.ndarray
    """Numbers of nodes in the graph: first the ``shown`` ones, in order, then others that are only neighbours."""
    shown: int
    """How many nodes stand on the map."""
    starts: np.ndarray
    """Neighbours of the i-th shown node: ``neighbours[starts[i] : starts[i + 1]]``."""
    neighbours: np.ndarray


def take_sample(
    edge_index: np.ndarray, n: int, most: int, most_neighbours: int = MOST_NEIGHBOURS, seed: int = 0
) -> Sample:
    """All nodes, or ``most`` of them drawn at random, each with at most ``most_neighbours`` random neighbours."""
    rng = np.random.default_rng(seed)
    shown = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
    links = sparse.csr_array(
        (np.ones(edge_index.shape[1], bool), (edge_index[0], edge_index[1])), (n, n)
    )[shown]
    row = np.repeat(np.arange(len(shown)), np.diff(links.indptr))
    order = np.lexsort((rng.random(len(row)), row))  # neighbours of a node in random order
    rank = np.arange(len(row)) - links.indptr[row]
    kept = order[rank < most_neighbours]
    row, col = row[kept], links.indices[kept].astype(np.int64)
    order = np.lexsort((col, row))
    row, col = row[order], col[order]
    nodes = np.concatenate([shown, np.setdiff1d(col, shown)])
    position = np.empty(n, np.int64)
    position[nodes] = np.arange(len(nodes))
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(shown)))])
    return Sample(nodes, len(shown), starts, position[col])
