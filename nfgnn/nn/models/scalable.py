"""First filter, then transform: models that are trained on rows of terms computed before."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.conv import GATES, NFConv, PolyConv
from nfgnn.nn.conv.row_filter import filter_rows, row_coefficients
from nfgnn.nn.dropout import dropout
from nfgnn.nn.models.mlp import MLP
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import Features, NodeModel
from nfgnn.spectral import CSR, Basis, LambdaMax, Response, polynomial_terms


class Scalable(NodeModel):
    r"""Algorithm 2: the terms of the raw features come first, without parameters; filter and MLP follow row by row.

    .. math:: X^{(k)} = p_k(\tilde L)\,X, \qquad \tilde Z_i = \sum_{k=0}^{K} η_{ik}\,X^{(k)}_i, \qquad
              Z_i = \mathrm{MLP}(\tilde Z_i)

    The terms are the same in every epoch, so they are computed once and may lie on disk; from then on a node is a row
    ``[K + 1, features]`` and training is plain mini-batches of rows (:meth:`forward_rows`). ``forward`` does both steps
    for a graph in memory. Subclasses choose the filter, which is always called ``prop``.

    Args:
        prop: the filter.
        in_channels, out_channels, hidden_channels, num_layers, dropout: of the :class:`MLP`.
        batch_norm (bool): batch normalisation after every hidden linear map.
    """

    has_coefficients = True

    def __init__(
        self,
        prop: NFConv | PolyConv,
        in_channels: int,
        out_channels: int,
        hidden_channels: int,
        num_layers: int,
        dropout: float,
        batch_norm: bool,
    ) -> None:
        super().__init__()
        self.prop = prop
        self.mlp = MLP(in_channels, out_channels, hidden_channels, num_layers, dropout)
        hidden = num_layers - 1 if batch_norm else 0
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden_channels) for _ in range(hidden))

    def reset_parameters(self) -> None:
        for part in (self.prop, self.mlp, *self.norms):
            part.reset_parameters()

    def rows(self, x: Features, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """The terms of every node as a row, ``[n, K + 1, channels]``: all that the model needs of a graph."""
        dense = x.tensor.to_dense() if isinstance(x, CSR) else x.to_dense()
        operator = self.prop.operator(dense, edge_index, edge_weight)
        return polynomial_terms(dense, operator, self.prop.basis, self.prop.K).transpose(0, 1)

    def forward_rows(self, rows: Tensor) -> Tensor:
        """The logits of rows ``[b, K + 1, channels]``."""
        z: Any = filter_rows(self.prop, rows)
        if not self.norms:
            return self.mlp(z)  # type: ignore[no-any-return]
        *hidden, last = self.mlp.lins
        for lin, norm in zip(hidden, self.norms):
            z = F.relu(norm(lin(dropout(z, self.mlp.dropout, self.training))))
        out: Tensor = last(dropout(z, self.mlp.dropout, self.training))
        return out

    def forward(self, x: Features, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """"""
        return self.forward_rows(self.rows(x, edge_index, edge_weight))

    def row_coefficients(self, rows: Tensor) -> Tensor:
        """Ψ of rows, ``[b, K + 1]``."""
        return row_coefficients(self.prop, rows)

    def coefficients(
        self, x: Features, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Ψ: the filter coefficients of every node in the basis of ``prop``, ``[n, K + 1]``."""
        return self.row_coefficients(self.rows(x, edge_index, edge_weight))


@register_model(
    "NFGNN with the filter first (Algorithm 2)", 2022, "O(Knfd + nfh), once O(Kmf)", mini_batch=True
)
class ScalableNFGNN(Scalable):
    r"""Scalable NFGNN (Algorithm 2 of `the paper <https://arxiv.org/abs/2212.03654>`_): the filter, then an MLP.

    .. math::
        X^{(k)} = p_k(\tilde L)\,X, \qquad η_{ik} = σ\big(X^{(k)}_i W\big) · Γ_k, \qquad
        Z_i = \mathrm{MLP}\Big(\sum_{k=0}^{K} η_{ik}\, X^{(k)}_i\Big)

    Unlike in :class:`NFGNN` the filter works on the raw features, so its terms need no parameters and are computed
    before training. ``forward`` returns logits.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the MLP. (default: ``64``)
        num_layers (int): linear maps in the MLP. (default: ``2``)
        dropout (float): dropout in the MLP, on input and hidden layers. (default: ``0.5``)
        batch_norm (bool): batch normalisation after every hidden linear map. (default: ``False``)
        K, rank, basis, gate, activation, init, alpha, self_loops, lambda_max: of :class:`~nfgnn.nn.NFConv`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        dropout: float = 0.5,
        batch_norm: bool = False,
        K: int = 10,
        rank: int = 1,
        basis: str | Basis = "chebyshev",
        gate: str = "term",
        activation: str | None = None,
        init: str | Response = "ppr",
        alpha: float = 0.1,
        self_loops: bool = False,
        lambda_max: LambdaMax = 2.0,
    ) -> None:
        if gate in GATES and not GATES[gate].rowwise:
            rowwise = ", ".join(name for name, form in GATES.items() if form.rowwise)
            raise ValueError(
                f"gate '{gate}' needs the graph, and the scalable form has rows only: choose {rowwise}"
            )
        prop = NFConv(
            in_channels, K, rank, basis, gate, activation, init, alpha, self_loops, lambda_max
        )
        super().__init__(
            prop, in_channels, out_channels, hidden_channels, num_layers, dropout, batch_norm
        )
