"""Frequency adaptation by signed attention."""

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import FAConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import remove_self_loops

from nfgnn.nn.argument_checks import check_counts, check_rates
from nfgnn.nn.dropout import dropout
from nfgnn.nn.features import Features
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel


@register_model(
    "Beyond Low-frequency Information in Graph Convolutional Networks", 2021, "O(nfh + Kmh)"
)
class FAGCN(NodeModel):
    r"""Sums over neighbours with learned signs (`Bo et al. <https://arxiv.org/abs/2101.00797>`_).

    .. math::
        H^{(0)} = \mathrm{ReLU}(W_1 X + b_1), \quad
        H^{(k+1)}_i = ε H^{(0)}_i
            + \sum_{j ∈ N(i)} \frac{α^{(k)}_{ij}}{\sqrt{d_i d_j}} H^{(k)}_j, \quad
        α^{(k)}_{ij} = \tanh\big(a_k^⊤ [H^{(k)}_i ‖ H^{(k)}_j]\big), \quad Z = W_2 H^{(K)} + b_2

    α > 0 keeps low frequencies (a node becomes similar to its neighbours), α < 0 high ones. The
    sums are :class:`torch_geometric.nn.FAConv`, without self-loops as in the published code.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of all layers. (default: ``32``)
        K (int): number of layers. (default: ``2``)
        eps (float): share ε of the first layer kept in every later one. (default: ``0.3``)
        dropout (float): dropout on the input, on the first layer and on α. (default: ``0.5``)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 32,
        K: int = 2,
        eps: float = 0.3,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        check_counts(hidden_channels=hidden_channels)
        check_counts(least=0, K=K)
        check_rates(dropout=dropout)
        self.lin1 = Linear(in_channels, hidden_channels)
        self.convs = nn.ModuleList()
        for _ in range(K):
            self.convs.append(FAConv(hidden_channels, eps, dropout, normalize=False))
        self.lin2 = Linear(hidden_channels, out_channels)
        self.dropout = dropout
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for lin in (self.lin1, self.lin2):
            nn.init.xavier_normal_(lin.weight, gain=2**0.5)
            nn.init.zeros_(lin.bias)
        for conv in self.convs:
            if isinstance(conv, FAConv):
                conv.reset_parameters()

    def forward(self, x: Features, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """"""
        dtype = self.lin1.weight.dtype
        if edge_weight is not None:
            edge_weight = edge_weight.to(dtype)
        edge_index, edge_weight = remove_self_loops(edge_index.long(), edge_weight)
        # Normalised once for all layers, which therefore have normalize=False.
        edge_index, norm = gcn_norm(
            edge_index, edge_weight, x.shape[0], add_self_loops=False, dtype=dtype
        )
        first = F.relu(self.lin1(dropout(x, self.dropout, self.training)))
        first = F.dropout(first, self.dropout, self.training)
        hidden = first
        for conv in self.convs:
            hidden = conv(hidden, first, edge_index, norm)
        out: Tensor = self.lin2(hidden)
        return out
