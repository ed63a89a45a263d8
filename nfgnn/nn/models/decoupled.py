"""First transform, then filter: the shape that NFGNN shares with APPNP, GPRGNN and BernNet."""

from typing import Any

from torch import Tensor

from nfgnn.nn.conv import NFConv, PolyConv
from nfgnn.nn.dropout import dropout_dense
from nfgnn.nn.models.linked_mlp import LinkedMLP
from nfgnn.nn.models.mlp import MLP
from nfgnn.nn.node_model import Features, NodeModel


class Decoupled(NodeModel):
    r"""An MLP makes class scores from features, a filter without further transformation spreads them over the graph.

    .. math:: X^{(0)} = \mathrm{MLP}(X), \qquad Z = \mathrm{filter}(X^{(0)}, \tilde L)

    Subclasses choose the filter. It is always called ``prop``: its parameters form the second optimiser group.

    Args:
        prop: the filter.
        in_channels, out_channels, hidden_channels, num_layers, dropout: of the :class:`MLP`.
        filter_dropout (float): dropout between the MLP and the filter.
        link (str): ``"raw"``, ``"row"`` or ``"scores"`` give the MLP a link branch: see :class:`LinkedMLP`. (default:
            ``"none"``)
        num_nodes (int): number of nodes, for the link branch only; the trainer fills it in.
    """

    shares_passes = True
    has_coefficients = True

    def __init__(
        self,
        prop: NFConv | PolyConv,
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
        sizes = (in_channels, out_channels, hidden_channels, num_layers, dropout)
        self.mlp = MLP(*sizes) if link == "none" else LinkedMLP(*sizes, link, num_nodes)
        self.prop = prop
        self.filter_dropout = filter_dropout

    def reset_parameters(self) -> None:
        self.mlp.reset_parameters()
        self.prop.reset_parameters()

    def scores(
        self, x: Features, edge_index: Any = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The input X⁽⁰⁾ of the filter."""
        return dropout_dense(
            self.mlp(x, edge_index, edge_weight), self.filter_dropout, self.training
        )

    def forward(self, x: Features, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """"""
        out: Tensor = self.prop(self.scores(x, edge_index, edge_weight), edge_index, edge_weight)
        return out

    def forward_pair(
        self, x: Features, edge_index: Any, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The logits of training, and those of evaluation without a gradient; one recurrence serves both."""
        self.training = True
        scores, held = self.mlp.forward_pair(x, edge_index, edge_weight)
        return self.prop.forward_pair(
            dropout_dense(scores, self.filter_dropout, True), held, edge_index, edge_weight
        )

    def coefficients(
        self, x: Features, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Ψ: the filter coefficients of every node in the basis of ``prop``, ``[n, K + 1]``."""
        psi: Tensor = self.prop(
            self.scores(x, edge_index, edge_weight),
            edge_index,
            edge_weight,
            return_coefficients=True,
        )[1]
        return psi
