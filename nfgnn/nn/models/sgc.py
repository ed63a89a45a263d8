"""Simplified graph convolution."""

import torch
from torch import Tensor, nn

from nfgnn.nn.conv import PolyConv
from nfgnn.nn.dropout import dropout
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel
from nfgnn.spectral import CSR, ScaledLaplacian


@register_model("Simplifying Graph Convolutional Networks", 2019, "O(nfc + Kmc)")
class SGC(NodeModel):
    r"""A graph convolutional network without non-linearities (`Wu et al. <https://arxiv.org/abs/1902.07153>`_).

    .. math:: Z = \hat A^K X W + b, \qquad \hat A = D^{-1/2}(A + I)D^{-1/2}

    A fixed filter of response :math:`(1 - λ)^K` and one linear map, which comes first because it makes the
    products with the graph narrow.

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
        self.lin = Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.prop = PolyConv(K, "monomial", lambda t: (-t) ** K, self_loops=True, learnable=False)
        self.dropout = dropout
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()
        self.prop.reset_parameters()
        nn.init.zeros_(self.bias)

    def forward(
        self,
        x: Tensor | CSR,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """"""
        scores = self.lin(dropout(x, self.dropout, self.training))
        return self.prop(scores, edge_index, edge_weight) + self.bias  # type: ignore[no-any-return]
