r"""The terms of new nodes, without touching the rest of the graph.

Term k of a node depends on nodes at most k links away and on the degrees of those. So new nodes that are linked to a
known graph need their ball of K links: the features of its nodes, and the links of all but its outermost shell, with
the degrees that the *extended* graph has. Nodes are numbered by their distance; then term k + 1 is needed of a
beginning of that list only, the nodes at distance at most K - k - 1, and every step of the recurrence is shorter than
the one before. The result is that of recomputing the whole extended graph.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nfgnn.errors import UserError
from nfgnn.spectral import CSR, Basis, mixing_matrix, scaled_laplacian
from nfgnn.spectral.laplacian import fold_table, normalised

Rows = Callable[[Tensor], Tensor]
"""Nodes of the known graph → their (scaled) features, dense."""


@dataclass(frozen=True)
class Neighbours:
    """The known graph in compressed rows, without self-loops; the tensors may be memory-mapped."""

    indptr: Tensor
    indices: Tensor
    weight: Tensor | None = None

    @classmethod
    def of(cls, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> "Neighbours":
        """From both directions of every link, made once for a graph."""
        operator = scaled_laplacian(edge_index, edge_weight, num_nodes)
        return cls(operator.indptr, operator.indices, operator.weight)

    @property
    def num_nodes(self) -> int:
        return self.indptr.numel() - 1

    def links(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All links of some nodes: place in ``nodes``, neighbour, weight."""
        first = self.indptr[nodes].long()
        counts = self.indptr[nodes + 1].long() - first
        place = torch.repeat_interleave(torch.arange(nodes.numel()), counts)
        entry = torch.arange(place.numel()) + (first - counts.cumsum(0) + counts)[place]
        weight = (
            torch.ones(entry.numel(), dtype=torch.float64)
            if self.weight is None
            else self.weight[entry].double()
        )
        return place, self.indices[entry].long(), weight

    def degree(self, nodes: Tensor) -> Tensor:
        """Sums of the weights of some nodes' links; where there are no weights, without looking at the links."""
        if self.weight is None:
            return (self.indptr[nodes + 1] - self.indptr[nodes]).double()
        place, _, weight = self.links(nodes)
        return torch.zeros(nodes.numel(), dtype=torch.float64).scatter_add_(0, place, weight)


@dataclass(frozen=True)
class NewNodes:
    """Nodes that the known graph does not have.

    Args:
        x: their features, ``[m, features]``.
        edge_index: their links, each once in either direction. Numbers from ``num_nodes`` of the known graph on mean
            the new nodes, in the order of ``x``.
        edge_weight: weights of the links; ``None`` stands for ones.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None = None

    def both_ways(self, known: int) -> tuple[Tensor, Tensor, Tensor]:
        """Source, target and weight of every link and its reverse, by source; a link listed twice counts once."""
        total, ends = known + self.x.shape[0], self.edge_index
        if ends.numel() and (int(ends.min()) < 0 or int(ends.max()) >= total):
            raise UserError(f"a link of the new nodes names a node outside of 0…{total - 1}")
        if bool((ends.max(0).values < known).any()):
            raise UserError(
                "a link of the new nodes joins two nodes of the known graph: leave it out"
            )
        weight = torch.ones(ends.shape[1]) if self.edge_weight is None else self.edge_weight
        keep = ends[0] != ends[1]
        pairs, which = torch.unique(ends[:, keep].sort(0).values, dim=1, return_inverse=True)
        weight = torch.zeros(pairs.shape[1], dtype=torch.float64).scatter_(
            0, which, weight[keep].double()
        )
        source, target = torch.cat([pairs, pairs.flip(0)], 1)
        order = source.argsort(stable=True)
        return source[order], target[order], weight.repeat(2)[order]


class _Extended:
    """The known graph and the new nodes as one graph."""

    def __init__(self, graph: Neighbours, new: NewNodes) -> None:
        self.graph, self.source, self.target, self.weight = graph, *new.both_ways(graph.num_nodes)

    def links(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As :meth:`Neighbours.links`, in order of place."""
        known = (nodes < self.graph.num_nodes).nonzero().flatten()
        place, neighbour, weight = self.graph.links(nodes[known])
        start, stop = self._added(nodes)
        added = torch.repeat_interleave(torch.arange(nodes.numel()), stop - start)
        entry = torch.arange(added.numel()) + (stop - (stop - start).cumsum(0))[added]
        places = torch.cat([known[place], added])
        order = places.argsort(stable=True)
        neighbours = torch.cat([neighbour, self.target[entry]])
        return places[order], neighbours[order], torch.cat([weight, self.weight[entry]])[order]

    def degree(self, nodes: Tensor) -> Tensor:
        """As :meth:`Neighbours.degree`."""
        start, stop = self._added(nodes)
        sums = torch.cat([self.weight.new_zeros(1), self.weight.cumsum(0)])
        degree, known = sums[stop] - sums[start], nodes < self.graph.num_nodes
        degree[known] += self.graph.degree(nodes[known])
        return degree

    def _added(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Where the added links of some nodes begin and end."""
        return torch.searchsorted(self.source, nodes), torch.searchsorted(
            self.source, nodes, right=True
        )


def terms_of_new_nodes(
    graph: Neighbours,
    features: Rows,
    new: NewNodes,
    basis: Basis,
    K: int,
    self_loops: bool = False,
    lambda_max: float = 2.0,
) -> Tensor:
    r"""Rows ``[m, K + 1, features]`` of the terms :math:`p_k(\tilde L) X` of the extended graph, for the new nodes.

    Args:
        graph: the known graph.
        features: gives the features of nodes of the known graph.
        new: the new nodes; ``new.x`` scaled as ``features`` are.
        basis, K, self_loops, lambda_max: what the model's terms are made by.
    """
    m, extended = new.x.shape[0], _Extended(graph, new)
    ball = torch.arange(graph.num_nodes, graph.num_nodes + m)
    shell, ends, links = ball, [m], []
    for _ in range(K):
        place, neighbour, weight = extended.links(shell)
        links.append((place + ball.numel() - shell.numel(), neighbour, weight))
        shell = neighbour.unique()
        shell = shell[~torch.isin(shell, ball)]
        ball = torch.cat([ball, shell])
        ends.append(ball.numel())
    matrix = _normalised(ball, links, extended.degree(ball), self_loops) if K else None
    old = ball[m:]
    current = torch.cat([new.x, features(old)]) if old.numel() else new.x
    previous, terms = torch.zeros_like(current), [current[:m]]
    for k, (a, b, c) in enumerate(fold_table(basis.table(K), lambda_max)):
        size = ends[K - k - 1]
        assert matrix is not None
        product = _top(matrix, size, current.shape[0]) @ current
        current, previous = a * product + b * current[:size] + c * previous[:size], current
        terms.append(current[:m])
    stacked = torch.stack(terms, 1)
    mixing = mixing_matrix(basis, K, stacked.dtype, stacked.device)
    return stacked if mixing is None else torch.einsum("kj,mjc->mkc", mixing, stacked)


def _normalised(
    ball: Tensor, links: list[tuple[Tensor, Tensor, Tensor]], degree: Tensor, self_loops: bool
) -> CSR:
    """The rows of Â that have links: those of all nodes of the ball but its last shell."""
    row, neighbour, weight = (torch.cat([part[i] for part in links]) for i in range(3))
    order, n = ball.argsort(), ball.numel()
    column = order[torch.searchsorted(ball[order], neighbour)]
    if self_loops:
        loops = torch.arange(n)
        row, column = torch.cat([row, loops]), torch.cat([column, loops])
        by_row = row.argsort(stable=True)
        row, column, weight = (
            row[by_row],
            column[by_row],
            torch.cat([weight, weight.new_ones(n)])[by_row],
        )
    scale = (degree + self_loops).rsqrt()
    scale = torch.where(scale.isfinite(), scale, 0.0)
    pattern = CSR.from_sorted(row, column, weight, (n, n))
    values = normalised(pattern.indptr, pattern.indices.long(), weight, scale, scale)
    return CSR(pattern.indptr, pattern.indices, values.float(), (n, n))


def _top(matrix: CSR, rows: int, columns: int) -> CSR:
    """The first rows of a matrix; they have entries in the first columns only."""
    stop = int(matrix.indptr[rows])
    return CSR(
        matrix.indptr[: rows + 1], matrix.indices[:stop], matrix.values[:stop], (rows, columns)
    )
