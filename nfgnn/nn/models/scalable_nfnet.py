"""ScalableNFGNN with a sketch of the adjacency matrix and residual layers."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from nfgnn.errors import UserError
from nfgnn.nn.conv import NFConv
from nfgnn.nn.dropout import dropout_dense
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.nfgnn import check_rowwise
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.models.scalable import Scalable
from nfgnn.nn.node_model import Features
from nfgnn.spectral import Basis, LambdaMax, Response, adjacency_sketch, scaled_laplacian


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
        H_i = \mathrm{ReLU}(\tilde Z_i W_1 + \sqrt{d}\, s_i W_s + b_1), \qquad
        H_i ← H_i + \mathrm{ReLU}(H_i W_l + b_l), \qquad Z_i = H_i W_L + b_L

    A filter sees neighbours only through their features. On some graphs it matters who the
    neighbours are, which models with ``link`` learn from the adjacency matrix. The sketch
    :math:`s_i` hashes the neighbours of a node into d columns
    (:mod:`nfgnn.spectral.neighbour_hashing`), so it is a part of a row like the terms, and can be
    stored. A row is flat: the terms, then the sketch, ``[(K + 1) in_channels + sketch]``.

    Nodes are hashed by their number. With a sketch, the model can therefore only be applied to the
    graph that it was trained on, and to new nodes of that graph.

    Args:
        in_channels, out_channels, dropout: see :class:`NFGNN`.
        hidden_channels (int): width of the hidden layers. (default: ``256``)
        num_layers (int): number of linear maps, at least 2. (default: ``2``)
        batch_norm (bool): batch normalisation after every hidden linear map. (default: ``False``)
        sketch (int): columns of the sketch; 0 uses the terms only. (default: ``0``)
        sketch_dropout (float): dropout of the sketch. (default: ``0.2``)
        K, rank, basis, gate, activation, init, alpha, self_loops, lambda_max: see
            :class:`ScalableNFGNN`.
        num_nodes (int): number of nodes of the graph, which ``sketch`` depends on. The trainer sets
            it.
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
    ) -> None:
        check_rowwise(gate)
        if num_layers < 2:
            raise ValueError(f"num_layers must be at least 2, got {num_layers}")
        if sketch < 0:
            raise ValueError(f"sketch must be at least 0, got {sketch}")
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
        self.sketch = sketch
        self.sketch_dropout = sketch_dropout
        self.sketch_map = Linear(sketch, hidden_channels) if sketch else None

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.sketch_map is not None:
            self.sketch_map.reset_parameters()

    def rows(self, x: Features, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """Return the terms and the sketch of every node, ``[n, (K + 1) in_channels + sketch]``."""
        terms = super().rows(x, edge_index, edge_weight).flatten(1)
        if not self.sketch:
            return terms
        n = x.shape[0]
        if self.num_nodes not in (None, n):
            raise UserError(
                "a model with a sketch hashes nodes by their index, so it can only be applied "
                f"to the graph that it was trained on: it has {self.num_nodes} nodes, this graph "
                f"has {n}"
            )
        graph = scaled_laplacian(edge_index, edge_weight, n)
        sketch = adjacency_sketch(graph.indptr, graph.indices, self.sketch, torch.arange(n))
        return torch.cat([terms, sketch.to(terms)], 1)

    def forward_rows(self, rows: Tensor) -> Tensor:
        """Return the logits of rows ``[b, (K + 1) in_channels + sketch]``."""
        first, *hidden, last = self.mlp.linear_maps()
        p = self.mlp.dropout
        filtered = self.prop.filter_rows(self._terms(rows))
        h = first(dropout_dense(filtered, p, self.training))
        if self.sketch_map is not None:
            # A length of sqrt(sketch) instead of 1 is the scale that linear maps are initialised
            # for. With a length of 1, the features are learned first, and by heart.
            sketch = rows[:, rows.shape[1] - self.sketch :] * math.sqrt(self.sketch)
            h = h + self.sketch_map(dropout_dense(sketch, self.sketch_dropout, self.training))
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

    def _normalised(self, h: Tensor, layer: int) -> Tensor:
        """Return the output of a layer after its batch normalisation, if there is one."""
        if len(self.norms) == 0:
            return h
        normalised: Tensor = self.norms[layer](h)
        return normalised
