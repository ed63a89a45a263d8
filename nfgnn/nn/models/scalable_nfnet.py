"""ScalableNFGNN with further parts of a row, attention over the terms and residual layers."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from nfgnn.errors import UserError
from nfgnn.nn.argument_checks import check_counts, check_rates
from nfgnn.nn.conv import NFConv
from nfgnn.nn.dropout import dropout_dense
from nfgnn.nn.features import Features, as_dense
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.nfgnn import check_rowwise
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.models.scalable import Scalable
from nfgnn.nn.term_attention import TermAttention
from nfgnn.spectral import (
    Basis,
    LambdaMax,
    Response,
    RowParts,
    derived_laplacian,
    parts_of_graph,
)


@register_model(
    "Algorithm 2 of NFGNN with hashed neighbours and residual layers",
    2022,
    "O(Knfd + nfh), once O(Kmf + m)",
    mini_batch=True,
)
class ScalableNFNet(Scalable):
    r"""The filter of :class:`ScalableNFGNN`, a sketch of the adjacency matrix and a residual MLP.

    .. math::
        \tilde Z_i = \sum_{k=0}^{K} η_{ik}\, X^{(k)}_i, \qquad
        H_i = \mathrm{ReLU}\big(\tilde Z_i W_1 + O_i + \sqrt{d}\, s_i W_s + \sqrt{d'}\, t_i W_t
              + a_i W_a + b_1\big), \qquad
        H_i ← H_i + \mathrm{ReLU}(H_i W_l + b_l), \qquad Z_i = H_i W_L + b_L

    A filter sees neighbours only through their features. On some graphs it matters who the
    neighbours are, which models with ``link`` learn from the adjacency matrix. The sketch
    :math:`s_i` hashes the neighbours of a node into d columns
    (:mod:`nfgnn.spectral.neighbour_hashing`), so it is a part of a row like the terms, and can be
    stored. :math:`t_i` does the same for two-hop neighbours
    (:mod:`nfgnn.spectral.two_hop_hashing`). The statistics :math:`a_i` are the logarithm of the
    degree and the agreement of a node: its mean cosine with its neighbours
    (:mod:`nfgnn.spectral.neighbour_agreement`) and the K cosines between consecutive terms, which
    the model computes from the row. :math:`O_i` is the output of :class:`~nfgnn.nn.TermAttention`.
    Every part is optional. A row is flat: the terms, then the parts in the order of
    :class:`~nfgnn.spectral.RowParts`.

    Nodes are hashed by their number. With a sketch, the model can therefore only be applied to the
    graph that it was trained on, and to new nodes of that graph.

    Args:
        in_channels, out_channels, dropout: see :class:`NFGNN`.
        hidden_channels (int): width of the hidden layers. (default: ``256``)
        num_layers (int): number of linear maps, at least 2. (default: ``2``)
        batch_norm (bool): batch normalisation after every hidden linear map. (default: ``False``)
        sketch (int): columns of the sketch; 0 uses the terms only. (default: ``0``)
        two_hop (int): columns of the sketch of two-hop neighbours. (default: ``0``)
        sketch_dropout (float): dropout of both sketches. (default: ``0.2``)
        degree (bool): whether rows hold the logarithm of the degree. (default: ``False``)
        agreement (bool): whether rows hold the mean cosine with the neighbours, which the model
            uses with the cosines between consecutive terms. (default: ``False``)
        attention (int): heads of the attention over the terms; 0 for none. (default: ``0``)
        K, rank, basis, gate, activation, init, alpha, self_loops, lambda_max: see
            :class:`ScalableNFGNN`.
        num_nodes (int): number of nodes of the graph, which the sketches depend on. The trainer
            sets it.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 256,
        num_layers: int = 2,
        dropout: float = 0.5,
        batch_norm: bool = False,
        sketch: int = 0,
        sketch_dropout: float = 0.2,
        K: int = 10,
        rank: int = 1,
        basis: str | Basis = "chebyshev",
        gate: str = "term",
        activation: str | None = None,
        init: str | Response = "ppr",
        alpha: float = 0.1,
        self_loops: bool = False,
        lambda_max: LambdaMax = 2.0,
        num_nodes: int | None = None,
        two_hop: int = 0,
        degree: bool = False,
        agreement: bool = False,
        attention: int = 0,
    ) -> None:
        check_rowwise(gate)
        check_counts(least=2, num_layers=num_layers)
        check_counts(least=0, sketch=sketch, two_hop=two_hop, attention=attention)
        check_rates(sketch_dropout=sketch_dropout)
        prop = NFConv(
            in_channels,
            K=K,
            rank=rank,
            basis=basis,
            gate=gate,
            activation=activation,
            init=init,
            alpha=alpha,
            self_loops=self_loops,
            lambda_max=lambda_max,
        )
        sizes = (in_channels, out_channels, hidden_channels, num_layers)
        super().__init__(prop, *sizes, dropout, batch_norm)
        self.in_channels = in_channels
        self.num_nodes = num_nodes
        self.parts = RowParts(sketch, two_hop, degree, agreement)
        self.sketch_dropout = sketch_dropout
        self.sketch_map = Linear(sketch, hidden_channels) if sketch else None
        self.two_hop_map = Linear(two_hop, hidden_channels) if two_hop else None
        statistics = int(degree) + (K + 1 if agreement else 0)
        self.statistics_map = Linear(statistics, hidden_channels) if statistics else None
        self.attention = None
        if attention:
            self.attention = TermAttention(in_channels, hidden_channels, K, attention)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        for part in (self.sketch_map, self.two_hop_map, self.statistics_map, self.attention):
            if part is not None:
                part.reset_parameters()

    def rows(self, x: Features, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """Return the terms and the other parts of every node, ``[n, values]``."""
        terms = super().rows(x, edge_index, edge_weight)
        if not self.parts.columns:
            return terms.flatten(1)
        n = x.shape[0]
        if self.parts.hashed and self.num_nodes not in (None, n):
            raise UserError(
                "a model with a sketch hashes nodes by their index, so it can only be applied "
                f"to the graph that it was trained on: it has {self.num_nodes} nodes, this graph "
                f"has {n}"
            )
        # The terms may need self-loops.
        graph = derived_laplacian(edge_index, edge_weight, n)
        dense = as_dense(x)
        parts = parts_of_graph(self.parts, dense, graph)
        return torch.cat([terms.flatten(1), parts.to(terms)], 1)

    def forward_rows(self, rows: Tensor) -> Tensor:
        """Return the logits of rows ``[b, (K + 1) in_channels + parts.width]``."""
        first, *hidden, last = self.mlp.linear_maps()
        p = self.mlp.dropout
        terms = self._terms(rows)
        h = first(dropout_dense(self.prop.filter_rows(terms), p, self.training))
        if self.attention is not None:
            h = h + self.attention(dropout_dense(terms, p, self.training))
        parts = self._parts(rows)
        if self.sketch_map is not None:
            h = h + self.sketch_map(self._scaled_sketch(parts["sketch"]))
        if self.two_hop_map is not None:
            h = h + self.two_hop_map(self._scaled_sketch(parts["two_hop"]))
        if self.statistics_map is not None:
            h = h + self.statistics_map(self._statistics(terms, parts))
        x = F.relu(self._normalised(h, 0))
        for i, lin in enumerate(hidden, 1):
            h = lin(dropout_dense(x, p, self.training))
            x = x + F.relu(self._normalised(h, i))
        logits: Tensor = last(dropout_dense(x, p, self.training))
        return logits

    def row_coefficients(self, rows: Tensor) -> Tensor:
        """Return Ψ of rows, ``[b, K + 1]``."""
        return self.prop.row_coefficients(self._terms(rows))

    def _terms(self, rows: Tensor) -> Tensor:
        """Return the terms of rows, ``[b, K + 1, in_channels]``."""
        orders = self.prop.K + 1
        # Rows without a sketch may come in the form of the terms.
        flat = rows.flatten(1)[:, : orders * self.in_channels]
        return flat.view(-1, orders, self.in_channels)

    def _parts(self, rows: Tensor) -> dict[str, Tensor]:
        """Return the other parts of rows by name."""
        columns = self.parts.columns
        if not columns:
            return {}
        begin = (self.prop.K + 1) * self.in_channels
        return dict(zip(columns, rows[:, begin:].split(list(columns.values()), 1)))

    def _scaled_sketch(self, sketch: Tensor) -> Tensor:
        # A length of sqrt(columns) instead of 1 is the scale that linear maps are initialised
        # for. With a length of 1, the model fits the features first and overfits them.
        scaled = sketch * math.sqrt(sketch.shape[1])
        return dropout_dense(scaled, self.sketch_dropout, self.training)

    def _statistics(self, terms: Tensor, parts: dict[str, Tensor]) -> Tensor:
        """Return the degree and the agreement of rows, ``[b, statistics]``."""
        found = [parts[name] for name in ("degree", "agreement") if name in parts]
        if self.parts.agreement:
            found.append(consecutive_cosines(terms))
        return torch.cat(found, 1)

    def _normalised(self, h: Tensor, layer: int) -> Tensor:
        """Return the output of a layer after its batch normalisation, if there is one."""
        if len(self.norms) == 0:
            return h
        normalised: Tensor = self.norms[layer](h)
        return normalised


def consecutive_cosines(terms: Tensor) -> Tensor:
    """Return the cosines between consecutive terms of rows, ``[b, K]``.

    Terms of less than 1 % of the length of the longest one count as that long, because the
    direction of a term that should be zero is rounding error. Where all terms are zero, so are the
    cosines.
    """
    length = terms.norm(dim=-1)
    least = 0.01 * length.amax(1, keepdim=True)
    length = torch.maximum(length, least)
    products = (terms[:, :-1] * terms[:, 1:]).sum(-1)
    lengths = length[:, :-1] * length[:, 1:]
    # The product of two short lengths may be zero, too.
    return products / torch.where(lengths > 0, lengths, 1.0)
