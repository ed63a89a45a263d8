"""A multi-layer perceptron on node features."""

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.dropout import dropout
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel
from nfgnn.nn.two_layer_mlp import serves, two_layers
from nfgnn.spectral import CSR


@register_model("Multi-layer perceptron on the features alone", 1986, "O(nfh)", mini_batch=True)
class MLP(NodeModel):
    r"""A multi-layer perceptron that ignores the graph: the baseline, and the transformation inside decoupled models.

    .. math:: X ↦ W_2\, \mathrm{ReLU}(W_1 X + b_1) + b_2, \quad\text{dropout before every linear map}

    Args:
        in_channels (int): number of features; they may be sparse.
        out_channels (int): number of classes.
        hidden_channels (int): width of the hidden layers. (default: ``64``)
        num_layers (int): number of linear maps. (default: ``2``)
        dropout (float): dropout on the input and on every hidden layer. (default: ``0.5``)
    """

    batchable = True
    shares_passes = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.lins = nn.ModuleList(Linear(a, b) for a, b in pairwise(widths))
        self.dropout = dropout

    def reset_parameters(self) -> None:
        for lin in self.lins:
            lin.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor | CSR, edge_index: Any = None, edge_weight: Any = None) -> Tensor:
        """"""
        *hidden, last = self.lins
        for lin in hidden:
            x = F.relu(lin(dropout(x, self.dropout, self.training)))
        out: Tensor = last(dropout(x, self.dropout, self.training))
        return out

    def forward_pair(
        self, x: Tensor | CSR, edge_index: Any = None, edge_weight: Any = None
    ) -> tuple[Tensor, Tensor]:
        """The scores of training, and those of evaluation without a gradient."""
        layers = list(self.lins)
        if type(self) is MLP and serves(x, layers, self.dropout):
            return two_layers(x, layers, self.dropout)
        self.training = False
        with torch.no_grad():
            held = self(x, edge_index, edge_weight)
        self.training = True
        return self(x, edge_index, edge_weight), held
