"""Chebyshev convolutions."""

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
    "Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering",
    2016,
    "O(Knfh + Kmh)",
)
class ChebNet(NodeModel):
    r"""Layers of Chebyshev convolutions (`Defferrard et al. <https://arxiv.org/abs/1606.09375>`_).

    .. math:: X^{(l+1)} = \mathrm{ReLU}\Big(\sum_{k=0}^{K} T_k(\tilde L)\,X^{(l)} W^{(l)}_k
              + b^{(l)}\Big)

    without ReLU in the last layer, and with dropout before every layer. Computes the same as a
    stack of :class:`torch_geometric.nn.ChebConv`, whose ``K`` counts terms and is one more than
    the degree here. Features are transformed first and summed by Clenshaw's algorithm, so that
    products with the graph have the width of the output.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the hidden layers. (default: ``32``)
        num_layers (int): number of layers. (default: ``2``)
        K (int): degree of the polynomials. (default: ``2``)
        dropout (float): dropout on the input of every layer. (default: ``0.5``)
    """

    batchable = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        K: int = 2,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        check_counts(in_channels=in_channels, out_channels=out_channels)
        check_counts(hidden_channels=hidden_channels, num_layers=num_layers)
        check_counts(least=0, K=K)
        check_rates(dropout=dropout)
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.lins = nn.ModuleList(Linear(a, (K + 1) * b, bias=False) for a, b in pairwise(widths))
        self.biases = nn.ParameterList(nn.Parameter(torch.empty(b)) for b in widths[1:])
        self.K = K
        self.dropout = dropout
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for lin, bias in zip(self.lins, self.biases):
            # One linear map holds the weights of all orders. Each is drawn as a map of its own,
            # because the scale of the initialisation depends on the shape.
            for weight in lin.get_parameter("weight").chunk(self.K + 1):
                nn.init.xavier_uniform_(weight)
            nn.init.zeros_(bias)

    def forward(
        self,
        x: Features,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """"""
        operator = scaled_laplacian(edge_index, edge_weight, x.shape[0])
        *hidden, (last, last_bias) = zip(self.lins, self.biases)
        for lin, bias in hidden:
            x = F.relu(self._convolve(x, lin, operator) + bias)
        out: Tensor = self._convolve(x, last, operator) + last_bias
        return out

    def _convolve(self, x: Features, lin: nn.Module, operator: ScaledLaplacian) -> Tensor:
        terms = lin(dropout(x, self.dropout, self.training))
        return clenshaw(terms.chunk(self.K + 1, -1), operator)


def clenshaw(terms: tuple[Tensor, ...], operator: ScaledLaplacian) -> Tensor:
    r"""Return :math:`\sum_k T_k(\tilde L) Y_k`, from the highest term down, with K products."""
    first, *rest = terms
    if not rest:
        return first
    *others, newer = rest
    older = torch.zeros_like(first)
    for term in reversed(others):
        newer, older = term + 2 * (operator @ newer) - older, newer
    return first + operator @ newer - older
