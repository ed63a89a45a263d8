"""A multi-layer perceptron on node features."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.argument_checks import check_counts, check_rates
from nfgnn.nn.dropout import dropout
from nfgnn.nn.features import Features
from nfgnn.nn.fused_mlp import can_fuse, fused_mlp
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel


@register_model("Multi-layer perceptron on the features alone", 1986, "O(nfh)", mini_batch=True)
class MLP(NodeModel):
    r"""A multi-layer perceptron that ignores the graph: a baseline, and a part of other models.

    .. math:: X ↦ W_2\, \mathrm{ReLU}(W_1 X + b_1) + b_2, \quad
              \text{with dropout before every linear map}

    Args:
        in_channels (int): number of features, which may be sparse.
        out_channels (int): number of classes.
        hidden_channels (int): width of the hidden layers. (default: ``64``)
        num_layers (int): number of linear maps. (default: ``2``)
        dropout (float): dropout on the input and on every hidden layer. (default: ``0.5``)
    """

    batchable = True
    shares_passes = True
    reads_edges = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        check_counts(in_channels=in_channels, out_channels=out_channels)
        check_counts(hidden_channels=hidden_channels, num_layers=num_layers)
        check_rates(dropout=dropout)
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.lins = nn.ModuleList(Linear(a, b) for a, b in pairwise(widths))
        self.dropout = dropout

    def reset_parameters(self) -> None:
        for lin in self.linear_maps():
            lin.reset_parameters()

    def linear_maps(self) -> list[Linear]:
        return [lin for lin in self.lins if isinstance(lin, Linear)]

    def forward(
        self, x: Features, edge_index: Any = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        """"""
        return self.layers(x, self.linear_maps())

    def layers(self, x: Features, maps: list[Linear], norms: Sequence[nn.Module] = ()) -> Tensor:
        """Apply linear maps with dropout before and ReLU between them.

        Args:
            x: the input.
            maps: some of the linear maps.
            norms: normalisations before the ReLUs, none by default.
        """
        *hidden, last = maps
        for i, lin in enumerate(hidden):
            h = lin(dropout(x, self.dropout, self.training))
            x = F.relu(norms[i](h) if norms else h)
        out: Tensor = last(dropout(x, self.dropout, self.training))
        return out

    def forward_pair(
        self, x: Features, edge_index: Any = None, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        maps = self.linear_maps()
        if can_fuse(x, maps, self.dropout):
            return fused_mlp(x, maps, self.dropout)
        return self._two_passes(x, edge_index, edge_weight)

    def _two_passes(
        self, x: Features, edge_index: Any, edge_weight: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        # Only this module has a mode. Setting it directly saves the walk through all submodules.
        self.training = False
        with torch.no_grad():
            evaluated: Tensor = self(x, edge_index, edge_weight)
        self.training = True
        return self(x, edge_index, edge_weight), evaluated
