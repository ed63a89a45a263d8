"""Graph convolutional network."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.argument_checks import check_counts, check_rates
from nfgnn.nn.dropout import dropout
from nfgnn.nn.features import Features
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel
from nfgnn.spectral import ScaledLaplacian, scaled_laplacian


@register_model(
    "Semi-supervised Classification with Graph Convolutional Networks", 2017, "O(nfh + mh)"
)
class GCN(NodeModel):
    r"""The graph convolutional network of `Kipf and Welling <https://arxiv.org/abs/1609.02907>`_.

    .. math:: X^{(l+1)} = \mathrm{ReLU}\big(\hat A\,X^{(l)} W^{(l)} + b^{(l)}\big), \qquad
              \hat A = D^{-1/2}(A + I)D^{-1/2}

    without ReLU in the last layer, and with dropout before every layer. On graphs without
    self-loops, it computes the same as a stack of :class:`torch_geometric.nn.GCNConv`, but the
    operator is built once and the features may be sparse.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the hidden layers. (default: ``64``)
        num_layers (int): number of layers. (default: ``2``)
        dropout (float): dropout on the input of every layer. (default: ``0.5``)
    """

    batchable = True

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
        self.lins = nn.ModuleList(Linear(a, b, bias=False) for a, b in pairwise(widths))
        self.biases = nn.ParameterList(nn.Parameter(torch.empty(b)) for b in widths[1:])
        self.dropout = dropout
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for lin, bias in zip(self.lins, self.biases):
            nn.init.xavier_uniform_(lin.get_parameter("weight"))
            nn.init.zeros_(bias)

    def forward(
        self,
        x: Features,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """"""
        operator = scaled_laplacian(edge_index, edge_weight, x.shape[0], self_loops=True)
        *hidden, (last, last_bias) = zip(self.lins, self.biases)
        # Â (X W) instead of (Â X) W: the product with the graph has fewer columns.
        for lin, bias in hidden:
            x = F.relu(operator.propagate(lin(dropout(x, self.dropout, self.training))) + bias)
        scores = last(dropout(x, self.dropout, self.training))
        out: Tensor = operator.propagate(scores) + last_bias
        return out
