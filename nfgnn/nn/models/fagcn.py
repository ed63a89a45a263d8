"""Frequency adaptation by signed attention."""

import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.argument_checks import check_counts, check_rates
from nfgnn.nn.dropout import dropout, dropout_dense
from nfgnn.nn.edge_list import EdgeList, normalised_edges
from nfgnn.nn.edge_operations import pair_sums, weighted_sums
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
    sums are those of :class:`torch_geometric.nn.FAConv`, without self-loops as in the published
    code, but the graph is normalised once and the features may be sparse.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of all layers. (default: ``32``)
        K (int): number of layers. (default: ``2``)
        eps (float): share ε of the first layer kept in every later one. (default: ``0.3``)
        dropout (float): dropout on the input, on the first layer and on α. (default: ``0.5``)
    """

    batchable = True

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
        check_counts(in_channels=in_channels, out_channels=out_channels)
        check_counts(hidden_channels=hidden_channels)
        check_counts(least=0, K=K)
        check_rates(dropout=dropout)
        self.lin1 = Linear(in_channels, hidden_channels)
        self.convs = nn.ModuleList()
        for _ in range(K):
            self.convs.append(_SignedAttention(hidden_channels, eps, dropout))
        self.lin2 = Linear(hidden_channels, out_channels)
        self.dropout = dropout
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for lin in (self.lin1, self.lin2):
            nn.init.xavier_normal_(lin.weight, gain=2**0.5)
            nn.init.zeros_(lin.bias)
        for conv in self.convs:
            if isinstance(conv, _SignedAttention):
                conv.reset_parameters()

    def forward(self, x: Features, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """"""
        edges, norm = normalised_edges(edge_index, edge_weight, x.shape[0], self.lin1.weight.dtype)
        first = F.relu(self.lin1(dropout(x, self.dropout, self.training)))
        first = dropout_dense(first, self.dropout, self.training)
        hidden = first
        for conv in self.convs:
            hidden = conv(hidden, first, edges, norm)
        out: Tensor = self.lin2(hidden)
        return out


class _SignedAttention(nn.Module):
    """A layer of FAGCN, with the parameters of :class:`torch_geometric.nn.FAConv`."""

    def __init__(self, channels: int, eps: float, dropout: float) -> None:
        super().__init__()
        self.att_l = nn.Linear(channels, 1, bias=False)
        self.att_r = nn.Linear(channels, 1, bias=False)
        self.eps = eps
        self.dropout = dropout
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.att_l.reset_parameters()
        self.att_r.reset_parameters()

    def forward(self, x: Tensor, first: Tensor, edges: EdgeList, norm: Tensor) -> Tensor:
        alpha = pair_sums(self.att_l(x), self.att_r(x), edges).tanh()
        alpha = dropout_dense(alpha, self.dropout, self.training)
        # One head.
        sums = weighted_sums(alpha * norm[:, None], x[:, None], edges).squeeze(1)
        return sums + self.eps * first
