"""The neighbours of some nodes, without self-loops and weights, and sums over them."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class NeighbourLists:
    """The neighbours of some nodes in CSR format, on the CPU. Make one with :meth:`of`.

    Args:
        nodes: numbers of the nodes, ``[b]``.
        indptr: bounds of the lists, int64 ``[b + 1]``.
        indices: the neighbours, int64.
    """

    nodes: Tensor
    indptr: Tensor
    indices: Tensor

    @classmethod
    def of(cls, nodes: Tensor, indptr: Tensor, indices: Tensor) -> "NeighbourLists":
        """Return the lists from rows of an adjacency matrix, one for each node of ``nodes``.

        Self-loops are removed.
        """
        nodes = nodes.cpu()
        indptr = indptr.cpu().long()
        targets = indices[int(indptr[0]) : int(indptr[-1])].cpu().long()
        row = torch.repeat_interleave(torch.arange(len(nodes)), indptr.diff())
        keep = targets != nodes[row]
        counts = torch.bincount(row[keep], minlength=len(nodes))
        return cls(nodes, _bounds(counts), targets[keep])

    @property
    def counts(self) -> Tensor:
        """Number of neighbours of every node."""
        return self.indptr.diff()

    @property
    def row(self) -> Tensor:
        """Position in ``nodes`` for every neighbour."""
        return torch.repeat_interleave(torch.arange(len(self.nodes)), self.counts)

    def select(self, positions: Tensor) -> "NeighbourLists":
        """Return the lists of some of the nodes, given by their positions."""
        begin = self.indptr[positions]
        counts = self.indptr[positions + 1] - begin
        bounds = _bounds(counts)
        entries = torch.arange(int(bounds[-1])) + torch.repeat_interleave(
            begin - bounds[:-1], counts
        )
        return NeighbourLists(self.nodes[positions], bounds, self.indices[entries])

    def pieces(self, size: int) -> Iterator["NeighbourLists"]:
        """Yield the lists of at most ``size`` nodes at a time."""
        for first in range(0, len(self.nodes), size):
            last = min(first + size, len(self.nodes))
            bounds = self.indptr[first : last + 1]
            entries = self.indices[int(bounds[0]) : int(bounds[-1])]
            yield NeighbourLists(self.nodes[first:last], bounds - bounds[0], entries)

    def sums(self, values: Tensor) -> Tensor:
        """Return the sum of rows of ``values`` over the neighbours of every node, ``[b, w]``."""
        ones = torch.ones(len(self.indices), dtype=values.dtype)
        shape = (len(self.nodes), len(values))
        matrix = torch.sparse_csr_tensor(
            self.indptr, self.indices, ones, shape, check_invariants=False
        )
        return matrix @ values


def _bounds(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
