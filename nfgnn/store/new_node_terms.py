r"""Compute the terms of new nodes from their neighbourhood only.

Term k of a node depends on the nodes at most k edges away, and on their degrees. The terms of new
nodes therefore need the ball of radius K around them: the features of its nodes, and the edges of
all nodes but the outermost shell, with the degrees that they have in the *extended* graph.

Nodes are numbered by their distance from the new nodes. Term k + 1 is then needed for the first
nodes of the ball only, those at a distance of at most K - k - 1, so every step of the recurrence is
shorter than the one before. The result equals that of recomputing the whole extended graph.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from nfgnn.errors import UserError
from nfgnn.spectral import (
    CSR,
    Basis,
    ScaledLaplacian,
    mixing_matrix,
    normalised,
    recurrence_table,
)

Features = Callable[[Tensor], Tensor]
"""Returns the scaled features of nodes of the existing graph as a dense matrix."""


@dataclass(frozen=True)
class Edges:
    """Directed edges that start at the nodes of a list.

    Args:
        row: position of the source in the list, ascending.
        target: number of the target in the graph.
        weight: weights in float64.
    """

    row: Tensor
    target: Tensor
    weight: Tensor


@dataclass(frozen=True)
class NewNodes:
    """Nodes that are added to an existing graph.

    Args:
        x: their features, ``[m, features]``.
        edge_index: their edges, each in one direction. Numbers from ``num_nodes`` of the existing
            graph on denote the new nodes, in the order of ``x``.
        edge_weight: weights of the edges; ``None`` means ones.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None = None

    def directed_edges(self, num_existing: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return source, target and weight of both directions of every edge, sorted by source.

        An edge that is listed twice counts once; self-loops are removed.
        """
        total = num_existing + self.x.shape[0]
        ends = self.edge_index
        if ends.numel() and (int(ends.min()) < 0 or int(ends.max()) >= total):
            raise UserError(
                f"an edge of the new nodes refers to a node outside of 0…{total - 1}; "
                "correct or remove the edge"
            )
        if bool((ends.max(0).values < num_existing).any()):
            raise UserError(
                "an edge of the new nodes connects two nodes of the existing graph; remove it"
            )
        weight = torch.ones(ends.shape[1]) if self.edge_weight is None else self.edge_weight
        keep = ends[0] != ends[1]
        pairs, which = torch.unique(ends[:, keep].sort(0).values, dim=1, return_inverse=True)
        pair_weight = torch.zeros(pairs.shape[1], dtype=torch.float64)
        pair_weight.scatter_(0, which, weight[keep].double())
        source, target = torch.cat([pairs, pairs.flip(0)], 1)
        order = source.argsort(stable=True)
        return source[order], target[order], pair_weight.repeat(2)[order]


class ExistingGraph(Protocol):
    """A graph that new nodes are added to, without self-loops."""

    @property
    def num_nodes(self) -> int: ...
    def edges(self, nodes: Tensor) -> Edges:
        """Return all edges of some nodes."""

    def degree(self, nodes: Tensor) -> Tensor:
        """Return the weighted degrees of some nodes in float64."""


class MemoryGraph:
    """The edges of an operator in memory."""

    def __init__(self, operator: ScaledLaplacian) -> None:
        self.operator = operator
        self.num_nodes = operator.num_nodes

    def edges(self, nodes: Tensor) -> Edges:
        operator = self.operator
        first = operator.indptr[nodes].long()
        row, entry = _ranges(first, operator.indptr[nodes + 1].long() - first)
        if operator.weight is None:
            weight = torch.ones(entry.numel(), dtype=torch.float64)
        else:
            weight = operator.weight[entry].double()
        return Edges(row, operator.indices[entry].long(), weight)

    def degree(self, nodes: Tensor) -> Tensor:
        operator = self.operator
        if operator.weight is None:
            return (operator.indptr[nodes + 1] - operator.indptr[nodes]).double()
        edges = self.edges(nodes)
        degree = torch.zeros(nodes.numel(), dtype=torch.float64)
        return degree.scatter_add_(0, edges.row, edges.weight)


class ExtendedEdges:
    """The existing graph together with the new nodes."""

    def __init__(self, graph: ExistingGraph, new: NewNodes) -> None:
        self.graph = graph
        self.source, self.target, self.weight = new.directed_edges(graph.num_nodes)

    def edges(self, nodes: Tensor) -> Edges:
        """Return all edges of some nodes."""
        existing = (nodes < self.graph.num_nodes).nonzero().flatten()
        old = self.graph.edges(nodes[existing])
        start, stop = self._added(nodes)
        added_row, entry = _ranges(start, stop - start)
        row = torch.cat([existing[old.row], added_row])
        target = torch.cat([old.target, self.target[entry]])
        weight = torch.cat([old.weight, self.weight[entry]])
        order = row.argsort(stable=True)
        return Edges(row[order], target[order], weight[order])

    def degree(self, nodes: Tensor) -> Tensor:
        """Return the weighted degrees of some nodes in float64."""
        start, stop = self._added(nodes)
        sums = torch.cat([self.weight.new_zeros(1), self.weight.cumsum(0)])
        degree = sums[stop] - sums[start]
        existing = nodes < self.graph.num_nodes
        degree[existing] += self.graph.degree(nodes[existing])
        return degree

    def _added(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Return where the added edges of some nodes begin and end."""
        start = torch.searchsorted(self.source, nodes)
        stop = torch.searchsorted(self.source, nodes, right=True)
        return start, stop


def terms_of_new_nodes(
    graph: ScaledLaplacian | ExistingGraph,
    features: Features,
    new: NewNodes,
    basis: Basis,
    K: int,
    self_loops: bool = False,
    lambda_max: float = 2.0,
) -> Tensor:
    r"""Return the rows of new nodes in the terms :math:`p_k(\tilde L) X` of the extended graph.

    Args:
        graph: the existing graph without self-loops; of an operator, only the edges are used.
        features: returns features of nodes of the existing graph.
        new: the new nodes; ``new.x`` is scaled like ``features``.
        basis, K, self_loops, lambda_max: how the terms of the model are computed.

    Returns:
        Terms ``[m, K + 1, features]``.
    """
    m = new.x.shape[0]
    if isinstance(graph, ScaledLaplacian):
        graph = MemoryGraph(graph)
    extended = ExtendedEdges(graph, new)
    ball = torch.arange(graph.num_nodes, graph.num_nodes + m)
    shell = ball
    sizes = [m]  # of the balls of radius 0 to K
    shell_edges = []
    for _ in range(K):
        edges = extended.edges(shell)
        offset = ball.numel() - shell.numel()
        shell_edges.append(Edges(edges.row + offset, edges.target, edges.weight))
        shell = edges.target.unique()
        shell = shell[~torch.isin(shell, ball)]
        ball = torch.cat([ball, shell])
        sizes.append(ball.numel())

    existing = ball[m:]
    current = new.x
    if existing.numel():
        current = torch.cat([new.x, features(existing)])
    terms = [current[:m]]
    if K > 0:
        matrix = _normalised_rows(ball, shell_edges, extended.degree(ball), self_loops)
        previous = torch.zeros_like(current)
        for k, (a, b, c) in enumerate(recurrence_table(basis, K, lambda_max)):
            size = sizes[K - k - 1]
            product = _first_rows(matrix, size, current.shape[0]) @ current
            following = a * product + b * current[:size] + c * previous[:size]
            previous = current
            current = following
            terms.append(current[:m])
    stacked = torch.stack(terms, 1)
    mixing = mixing_matrix(basis, K, stacked.dtype, stacked.device)
    if mixing is None:
        return stacked
    return torch.einsum("kj,mjc->mkc", mixing, stacked)


def _normalised_rows(
    ball: Tensor, shell_edges: list[Edges], degree: Tensor, self_loops: bool
) -> CSR:
    """Return Â on the ball; the rows of its outermost shell have no entries but self-loops."""
    n = ball.numel()
    row = torch.cat([edges.row for edges in shell_edges])
    target = torch.cat([edges.target for edges in shell_edges])
    weight = torch.cat([edges.weight for edges in shell_edges])
    order = ball.argsort()
    column = order[torch.searchsorted(ball[order], target)]
    if self_loops:
        loops = torch.arange(n)
        row, by_row = torch.cat([row, loops]).sort(stable=True)
        column = torch.cat([column, loops])[by_row]
        weight = torch.cat([weight, weight.new_ones(n)])[by_row]
    scale = (degree + self_loops).rsqrt()
    scale = torch.where(scale.isfinite(), scale, 0.0)
    pattern = CSR.from_sorted(row, column, weight, (n, n))
    values = normalised(pattern.indptr, pattern.indices.long(), weight, scale, scale)
    return CSR(pattern.indptr, pattern.indices, values.float(), (n, n))


def _first_rows(matrix: CSR, rows: int, columns: int) -> CSR:
    """Return the first rows of a matrix, whose entries are in the first columns only."""
    stop = int(matrix.indptr[rows])
    indptr = matrix.indptr[: rows + 1]
    return CSR(indptr, matrix.indices[:stop], matrix.values[:stop], (rows, columns))


def _ranges(first: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Concatenate ranges of integers; return the number of the range, and the integer itself."""
    number = torch.repeat_interleave(torch.arange(counts.numel()), counts)
    offset = first - counts.cumsum(0) + counts
    return number, torch.arange(number.numel()) + offset[number]
