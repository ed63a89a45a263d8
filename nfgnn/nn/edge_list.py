"""The edges of a graph as a list, for models that compute a weight for every edge.

A list is prepared once per graph. After that, a forward pass neither waits for the device nor has
shapes that depend on values. Edges may be directed and may be repeated.
:mod:`nfgnn.nn.edge_operations` computes with the values of edges.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import add_remaining_self_loops, remove_self_loops

from nfgnn.spectral import CSR, check_edges, check_tensors
from nfgnn.tensor_cache import TensorCache, constants

_CACHE = TensorCache()


class EdgeRows(NamedTuple):
    """The edges of every node: its entries are ``others[indptr[i]:indptr[i + 1]]``."""

    indptr: Tensor
    others: Tensor
    """The other ends of the edges."""
    edges: Tensor
    """The numbers of the edges in the list."""


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges from ``source`` to ``target``, of ``num_nodes`` nodes."""

    source: Tensor
    target: Tensor
    num_nodes: int
    original: "EdgeList | None" = None
    """The list that this one has in the other direction. Both share their rows."""

    @cached_property
    def by_target(self) -> EdgeRows:
        """The edges that end in every node."""
        if self.original is not None:
            return self.original.by_source
        return self._rows(self.target, self.source)

    @cached_property
    def by_source(self) -> EdgeRows:
        """The edges that start in every node."""
        if self.original is not None:
            return self.original.by_target
        return self._rows(self.source, self.target)

    @property
    def reversed(self) -> "EdgeList":
        """The edges in the other direction."""
        if self.original is not None:
            return self.original
        return EdgeList(self.target, self.source, self.num_nodes, original=self)

    def _rows(self, ends: Tensor, others: Tensor) -> EdgeRows:
        with constants():
            order = ends.argsort(stable=True)
            starts = torch.arange(self.num_nodes + 1, device=ends.device)
            indptr = torch.searchsorted(ends[order], starts)
            return EdgeRows(indptr, others[order].int(), order.int())


def edges_with_self_loops(edge_index: Tensor, num_nodes: int) -> EdgeList:
    """Return the edges with one self-loop at every node, cached for the life of ``edge_index``."""
    if torch.compiler.is_compiling():
        # A compiler cannot trace the preparation, so it breaks the graph here.
        prepared: EdgeList = torch.compiler.disable(edges_with_self_loops)(edge_index, num_nodes)
        return prepared

    def make() -> EdgeList:
        check_edges(edge_index, None, num_nodes)
        with_loops, _ = add_remaining_self_loops(edge_index.long(), num_nodes=num_nodes)
        return EdgeList(with_loops[0], with_loops[1], num_nodes)

    check_tensors(edge_index, None)
    return _CACHE.lookup((edge_index,), num_nodes, make)


def edges_of_matrix(matrix: CSR) -> EdgeList:
    """Return the entries of a square matrix as edges from column to row, cached for its life."""
    if torch.compiler.is_compiling():
        prepared: EdgeList = torch.compiler.disable(edges_of_matrix)(matrix)
        return prepared

    def make() -> EdgeList:
        row = torch.repeat_interleave(matrix.indptr.diff().long())
        column = matrix.indices.to(torch.long, copy=True)
        return EdgeList(column, row, matrix.shape[0])

    return _CACHE.lookup((matrix.indices,), matrix.shape, make)


def normalised_edges(
    edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int, dtype: torch.dtype
) -> tuple[EdgeList, Tensor]:
    r"""Return the edges without self-loops, and :math:`w_{ij} / \sqrt{d_i d_j}` of every edge.

    Both are cached for the life of the tensors, unless the weights require a gradient.
    """
    if torch.compiler.is_compiling():
        prepared: tuple[EdgeList, Tensor] = torch.compiler.disable(normalised_edges)(
            edge_index, edge_weight, num_nodes, dtype
        )
        return prepared

    def make() -> tuple[EdgeList, Tensor]:
        check_edges(edge_index, edge_weight, num_nodes)
        if edge_weight is None:
            weight = torch.ones(edge_index.shape[1], dtype=dtype, device=edge_index.device)
        else:
            weight = edge_weight.to(dtype)
        (source, target), weight = remove_self_loops(edge_index.long(), weight)
        degree = weight.new_zeros(num_nodes).scatter_add(0, target, weight)
        connected = degree > 0
        # Nodes without neighbours would have an infinite derivative.
        scale = torch.where(connected, torch.where(connected, degree, 1.0).pow(-0.5), 0.0)
        norm = scale[source] * weight * scale[target]
        return EdgeList(source, target, num_nodes), norm

    check_tensors(edge_index, edge_weight)
    if edge_weight is not None and edge_weight.requires_grad and torch.is_grad_enabled():
        return make()
    options = (num_nodes, dtype)
    return _CACHE.lookup((edge_index, edge_weight), options, make)
