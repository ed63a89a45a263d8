"""The adjacency matrix of a store, read in place."""

from dataclasses import dataclass

import numpy as np

from nfgnn.store.opened_files import UnusableStoreError

GRAPH_FILES = ("indptr", "indices", "scale", "weight")
"""Files of a store with a graph; only a weighted graph has the last one."""


@dataclass(frozen=True)
class Neighbours:
    """The entries of some rows of the adjacency matrix.

    Args:
        row: position of the node in the list that was asked for, ascending.
        target: the neighbour.
        weight: weight of the edge in float64.
    """

    row: np.ndarray
    target: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class StoredGraph:
    """An undirected graph in compressed rows, usually memory-mapped.

    Args:
        indptr: int64 ``[n + 1]``.
        indices: int32 ``[entries]``.
        scale: :math:`D^{-1/2}` in float64, 0 for nodes without edges.
        weight: float64 ``[entries]``; ``None`` stands for ones.
        self_loops: whether the entries contain a loop of weight one for every node.
        name: for error messages.
    """

    indptr: np.ndarray
    indices: np.ndarray
    scale: np.ndarray
    weight: np.ndarray | None
    self_loops: bool
    name: str

    @property
    def num_nodes(self) -> int:
        return len(self.scale)

    def num_entries(self, nodes: np.ndarray) -> np.ndarray:
        """Return the numbers of entries of some rows."""
        counts: np.ndarray = self.indptr[nodes + 1] - self.indptr[nodes]
        return counts

    def rows(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return some rows of the adjacency matrix, self-loops included.

        Returns:
            The numbers of their entries; the neighbours, row by row; and the weights in float64,
            ``None`` for ones.
        """
        first = self.indptr[nodes]
        counts = self.indptr[nodes + 1] - first
        if len(nodes) and (counts.min() < 0 or int((first + counts).max()) > len(self.indices)):
            raise self._damaged("indptr")
        entry = np.repeat(first - np.cumsum(counts) + counts, counts)
        entry += np.arange(len(entry))
        target = self.indices[entry]
        if len(target) and (target.min() < 0 or target.max() >= self.num_nodes):
            raise self._damaged("indices")
        return counts, target, None if self.weight is None else self.weight[entry]

    def neighbours(self, nodes: np.ndarray) -> Neighbours:
        """Return all entries of some rows, self-loops included."""
        counts, target, weight = self.rows(nodes)
        row = np.repeat(np.arange(len(nodes)), counts)
        weight = np.ones(len(row)) if weight is None else weight
        return Neighbours(row, target.astype(np.int64), weight)

    def degree(self, nodes: np.ndarray) -> np.ndarray:
        """Return the weighted degrees, self-loops included."""
        scale = self.scale[nodes]
        connected = scale > 0
        return np.where(connected, np.where(connected, scale, 1.0) ** -2, 0.0)

    def _damaged(self, file: str) -> UnusableStoreError:
        return UnusableStoreError(
            f"{self.name}: {file}.npy is damaged; precompute the store again, or restore the file "
            "from a copy"
        )
