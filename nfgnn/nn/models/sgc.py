"""Simplified graph convolution, with the filter after or before the linear map."""

from functools import partial

import torch
from torch import Tensor, nn

from nfgnn.nn.argument_checks import check_counts, check_rates
from nfgnn.nn.conv import PolyConv
from nfgnn.nn.dropout import dropout
from nfgnn.nn.features import Features
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.models.scalable import Scalable
from nfgnn.nn.node_model import NodeModel
from nfgnn.spectral import ScaledLaplacian


@register_model("Simplifying Graph Convolutional Networks", 2019, "O(nfc + Kmc)")
class SGC(NodeModel):
    r"""A graph convolutional network without non-linearities
    (`Wu et al. <https://arxiv.org/abs/1902.07153>`_).

    .. math:: Z = \hat A^K X W + b, \qquad \hat A = D^{-1/2}(A + I)D^{-1/2}

    A fixed filter with the response :math:`(1 - λ)^K` and one linear map. The map comes first,
    because it makes the products with the graph narrow.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        K (int): number of steps. (default: ``2``)
        dropout (float): dropout on the input. (default: ``0.0``)
    """

    batchable = True

    def __init__(
        self, in_channels: int, out_channels: int, K: int = 2, dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_counts(in_channels=in_channels, out_channels=out_channels)
        check_counts(least=0, K=K)
        check_rates(dropout=dropout)
        self.lin = Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.prop = _power(K)
        self.dropout = dropout
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()
        self.prop.reset_parameters()
        nn.init.zeros_(self.bias)

    def forward(
        self,
        x: Features,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """"""
        scores = self.lin(dropout(x, self.dropout, self.training))
        out: Tensor = self.prop(scores, edge_index, edge_weight) + self.bias
        return out


@register_model("SGC with the filter first", 2019, "O(nfc), once O(Kmf)", mini_batch=True)
class ScalableSGC(Scalable):
    r""":class:`SGC` with the power computed before training.

    .. math:: Z = (\hat A^K X)\, W + b

    Args:
        in_channels, out_channels, K: see :class:`SGC`.
        dropout (float): dropout on the filtered features. (default: ``0.0``)
    """

    def __init__(
        self, in_channels: int, out_channels: int, K: int = 2, dropout: float = 0.0
    ) -> None:
        super().__init__(_power(K), in_channels, out_channels, 1, 1, dropout, batch_norm=False)


def _power(K: int) -> PolyConv:
    """Return the fixed filter Â^K."""
    response = partial(_power_response, K=K)
    return PolyConv(K=K, basis="monomial", init=response, self_loops=True, learnable=False)


def _power_response(t: Tensor, K: int) -> Tensor:
    power: Tensor = (-t) ** K
    return power
