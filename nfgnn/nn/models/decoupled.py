"""Models that apply an MLP first and then a filter."""

from typing import Any

from torch import Tensor

from nfgnn.nn.argument_checks import check_rates
from nfgnn.nn.conv import PolynomialFilter
from nfgnn.nn.dropout import dropout_dense
from nfgnn.nn.features import Features
from nfgnn.nn.models.adjacency_mlp import AdjacencyMLP
from nfgnn.nn.models.mlp import MLP
from nfgnn.nn.node_model import NodeModel


class Decoupled(NodeModel):
    r"""An MLP computes class scores from features, and a filter propagates them over the graph.

    .. math:: X^{(0)} = \mathrm{MLP}(X), \qquad Z = \mathrm{filter}(X^{(0)}, \tilde L)

    Subclasses choose the filter, the submodule ``prop``. :class:`Scalable` has the opposite order.

    Args:
        prop: the filter.
        in_channels, out_channels, hidden_channels, num_layers, dropout: see :class:`MLP`.
        filter_dropout (float): dropout between the MLP and the filter.
        link (str): other values than ``"none"`` also give the rows of the adjacency matrix to the
            MLP, see :class:`AdjacencyMLP`. (default: ``"none"``)
        num_nodes (int): number of nodes, needed for ``link`` only. The trainer sets it.
    """

    shares_passes = True
    has_coefficients = True

    def __init__(
        self,
        prop: PolynomialFilter,
        in_channels: int,
        out_channels: int,
        hidden_channels: int,
        num_layers: int,
        dropout: float,
        filter_dropout: float,
        link: str = "none",
        num_nodes: int | None = None,
    ) -> None:
        super().__init__()
        check_rates(filter_dropout=filter_dropout)
        sizes = (in_channels, out_channels, hidden_channels, num_layers, dropout)
        if link == "none":
            self.mlp = MLP(*sizes)
        else:
            self.mlp = AdjacencyMLP(*sizes, link, num_nodes)
        self.prop = prop
        self.filter_dropout = filter_dropout

    def reset_parameters(self) -> None:
        self.mlp.reset_parameters()
        self.prop.reset_parameters()

    def forward(self, x: Features, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """"""
        out: Tensor = self.prop(self.scores(x, edge_index, edge_weight), edge_index, edge_weight)
        return out

    def forward_pair(
        self, x: Features, edge_index: Any, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        # Set directly, because train() walks through all submodules, in every epoch.
        self.training = True
        scores, evaluated = self.mlp.forward_pair(x, edge_index, edge_weight)
        scores = dropout_dense(scores, self.filter_dropout, True)
        # One recurrence serves both passes.
        return self.prop.forward_pair(scores, evaluated, edge_index, edge_weight)

    def coefficients(
        self, x: Features, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        scores = self.scores(x, edge_index, edge_weight)
        psi: Tensor = self.prop(scores, edge_index, edge_weight, return_coefficients=True)[1]
        return psi

    def scores(
        self, x: Features, edge_index: Any = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Return the input X⁽⁰⁾ of the filter."""
        scores = self.mlp(x, edge_index, edge_weight)
        return dropout_dense(scores, self.filter_dropout, self.training)
