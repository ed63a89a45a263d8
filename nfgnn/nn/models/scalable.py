"""Models that apply a filter first and then an MLP."""

from typing import Any

from torch import Tensor, nn

from nfgnn.nn.conv import PolynomialFilter
from nfgnn.nn.features import Features, as_dense
from nfgnn.nn.models.mlp import MLP
from nfgnn.nn.node_model import NodeModel
from nfgnn.spectral import RowParts, polynomial_terms


class Scalable(NodeModel):
    r"""A filter on the raw features, then an MLP (Algorithm 2 of the paper).

    .. math:: X^{(k)} = p_k(\tilde L)\,X, \qquad
              \tilde Z_i = \sum_{k=0}^{K} η_{ik}\,X^{(k)}_i, \qquad Z_i = \mathrm{MLP}(\tilde Z_i)

    The terms have no parameters, so they are computed once and can be stored on disk. From then on
    a node is a row ``[K + 1, features]``, and training uses mini-batches of rows
    (:meth:`forward_rows`). ``forward`` does both steps for a graph in memory. Subclasses choose
    the filter, the submodule ``prop``. :class:`Decoupled` has the opposite order.

    Args:
        prop: the filter.
        in_channels, out_channels, hidden_channels, num_layers, dropout: see :class:`MLP`.
        batch_norm (bool): batch normalisation after every hidden linear map.
    """

    has_coefficients = True

    parts = RowParts()
    """What follows the terms in a row."""

    def __init__(
        self,
        prop: PolynomialFilter,
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
        count = num_layers - 1 if batch_norm else 0
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden_channels) for _ in range(count))

    def reset_parameters(self) -> None:
        self.prop.reset_parameters()
        self.mlp.reset_parameters()
        for norm in self.norms:
            if isinstance(norm, nn.BatchNorm1d):
                norm.reset_parameters()

    def rows(self, x: Features, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """Return the terms of every node as a row, ``[n, K + 1, in_channels]``."""
        # Sparse features are dense after the first product anyway.
        dense = as_dense(x)
        operator = self.prop.prepared_operator(dense, edge_index, edge_weight)
        return polynomial_terms(dense, operator, self.prop.basis, self.prop.K).transpose(0, 1)

    def forward_rows(self, rows: Tensor) -> Tensor:
        """Return the logits of rows ``[b, K + 1, in_channels]``."""
        return self.mlp.layers(
            self.prop.filter_rows(rows), self.mlp.linear_maps(), list(self.norms)
        )

    def forward(self, x: Features, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """"""
        return self.forward_rows(self.rows(x, edge_index, edge_weight))

    def row_coefficients(self, rows: Tensor) -> Tensor:
        """Return Ψ of rows, ``[b, K + 1]``."""
        return self.prop.row_coefficients(rows)

    def coefficients(
        self, x: Features, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        return self.row_coefficients(self.rows(x, edge_index, edge_weight))
