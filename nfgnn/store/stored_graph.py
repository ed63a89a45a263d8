"""The adjacency matrix of a store, read in place."""

from dataclasses import dataclass

import numpy as np

from nfgnn.errors import UserError

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

    def neighbours(self, nodes: np.ndarray) -> Neighbours:
        """Return all entries of some rows, self-loops included."""
        first = self.indptr[nodes]
        counts = self.indptr[nodes + 1] - first
        if len(nodes) and (counts.min() < 0 or int((first + counts).max()) > len(self.indices)):
            raise self._damaged("indptr")
        row = np.repeat(np.arange(len(nodes)), counts)
        entry = np.arange(len(row)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        target = self.indices[entry].astype(np.int64)
        if len(target) and (target.min() < 0 or target.max() >= self.num_nodes):
            raise self._damaged("indices")
        if self.weight is None:
            return Neighbours(row, target, np.ones(len(row)))
        return Neighbours(row, target, self.weight[entry])

    def degree(self, nodes: np.ndarray) -> np.ndarray:
        """Return the weighted degrees, self-loops included."""
        scale = self.scale[nodes]
        connected = scale > 0
        return np.where(connected, np.where(connected, scale, 1.0) ** -2, 0.0)

    def _damaged(self, file: str) -> UserError:
        return UserError(
            f"{self.name}: {file}.npy is damaged; precompute the store again, or restore the file "
            "from a copy"
        )
