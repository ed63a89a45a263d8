"""The adjacency matrix of a store, read in place."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from nfgnn.store.opened_files import UnusableStoreError

GRAPH_FILES = ("indptr", "indices", "scale", "weight")
"""Files of a store with a graph; only a weighted graph has the last one."""

_BLOCK = 2**16
"""Rows of the whole graph that are read at once."""


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

    @cached_property
    def total_degree(self) -> float:
        """Sum of the weighted degrees of all nodes."""
        blocks = range(0, self.num_nodes, _BLOCK)
        return float(sum(self.degree(slice(first, first + _BLOCK)).sum() for first in blocks))

    @cached_property
    def neighbour_squares(self) -> np.ndarray:
        r"""Sums of :math:`w_{uv}^2 / d_v` over the entries of every row u, in float64.

        All entries are read when this is used for the first time.
        """
        n = self.num_nodes
        inverse_degree = np.square(self.scale)
        found = np.empty(n)
        for first in range(0, n, _BLOCK):
            starts = self.indptr[first : first + _BLOCK + 1]
            self._check_rows(starts[:-1], np.diff(starts))
            entries = slice(starts[0], starts[-1])
            indices = self.indices[entries]
            self._check_targets(indices)
            if self.weight is None:
                squares = np.ones(len(indices))
            else:
                squares = np.square(self.weight[entries])
            shape = (len(starts) - 1, n)
            block = sparse.csr_array((squares, indices, starts - starts[0]), shape)
            found[first : first + _BLOCK] = block @ inverse_degree
        return found

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
        self._check_rows(first, counts)
        entry = np.repeat(first - np.cumsum(counts) + counts, counts)
        entry += np.arange(len(entry))
        target = self.indices[entry]
        self._check_targets(target)
        return counts, target, None if self.weight is None else self.weight[entry]

    def neighbours(self, nodes: np.ndarray) -> Neighbours:
        """Return all entries of some rows, self-loops included."""
        counts, target, weight = self.rows(nodes)
        row = np.repeat(np.arange(len(nodes)), counts)
        weight = np.ones(len(row)) if weight is None else weight
        return Neighbours(row, target.astype(np.int64), weight)

    def degree(self, nodes: np.ndarray | slice) -> np.ndarray:
        """Return the weighted degrees, self-loops included."""
        scale = self.scale[nodes]
        connected = scale > 0
        return np.where(connected, np.where(connected, scale, 1.0) ** -2, 0.0)

    def _check_rows(self, first: np.ndarray, counts: np.ndarray) -> None:
        if len(first) and (counts.min() < 0 or int((first + counts).max()) > len(self.indices)):
            raise self._damaged("indptr")

    def _check_targets(self, target: np.ndarray) -> None:
        if len(target) and (target.min() < 0 or target.max() >= self.num_nodes):
            raise self._damaged("indices")

    def _damaged(self, file: str) -> UnusableStoreError:
        return UnusableStoreError(
            f"{self.name}: {file}.npy is damaged; precompute the store again, or restore the file "
            "from a copy"
        )
