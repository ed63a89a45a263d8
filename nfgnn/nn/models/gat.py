"""Graph attention network."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.argument_checks import check_counts, check_rates
from nfgnn.nn.dropout import dropout, dropout_dense
from nfgnn.nn.edge_list import EdgeList, edges_with_self_loops
from nfgnn.nn.edge_operations import pair_sums, softmax, weighted_sums
from nfgnn.nn.features import Features
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel


@register_model("Graph Attention Networks", 2018, "O(nfh + mh)")
class GAT(NodeModel):
    r"""Two layers of graph attention (`Veličković et al. <https://arxiv.org/abs/1710.10903>`_).

    .. math:: X'_i = \sum_{j ∈ N(i) ∪ \{i\}} α_{ij} W X_j + b, \qquad
              α_{ij} = \mathrm{softmax}_j\big(\mathrm{LeakyReLU}(a_d^⊤ W X_i + a_s^⊤ W X_j)\big)

    for every head. ELU follows the first layer. Its heads are concatenated, those of the last layer
    averaged. Computes the same as a stack of :class:`torch_geometric.nn.GATConv`, but the features
    may be sparse. Edge weights are not used.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of every head of the first layer. (default: ``8``)
        heads (int): heads of the first layer. (default: ``8``)
        out_heads (int): heads of the last layer. (default: ``1``)
        dropout (float): dropout on the input of both layers and on the attention.
            (default: ``0.5``)
    """

    batchable = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 8,
        heads: int = 8,
        out_heads: int = 1,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        check_counts(in_channels=in_channels, out_channels=out_channels)
        check_counts(hidden_channels=hidden_channels, heads=heads, out_heads=out_heads)
        check_rates(dropout=dropout)
        self.first = _Attention(in_channels, hidden_channels, heads, dropout)
        self.last = _Attention(heads * hidden_channels, out_channels, out_heads, dropout)
        self.bias = nn.Parameter(torch.empty(heads * hidden_channels))
        self.out_bias = nn.Parameter(torch.empty(out_channels))
        self.dropout = dropout
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.first.reset_parameters()
        self.last.reset_parameters()
        nn.init.zeros_(self.bias)
        nn.init.zeros_(self.out_bias)

    def forward(self, x: Features, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """"""
        # Attention replaces edge weights, so they are ignored.
        edges = edges_with_self_loops(edge_index, x.shape[0])
        hidden = self.first(dropout(x, self.dropout, self.training), edges).flatten(1)
        hidden = dropout_dense(F.elu(hidden + self.bias), self.dropout, self.training)
        out: Tensor = self.last(hidden, edges).mean(1) + self.out_bias
        return out


class _Attention(nn.Module):
    """Weighted means over neighbours, one per head: ``[n, heads, channels]``."""

    def __init__(self, in_channels: int, channels: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.lin = Linear(in_channels, heads * channels, bias=False)
        self.att_src = nn.Parameter(torch.empty(heads, channels))
        self.att_dst = nn.Parameter(torch.empty(heads, channels))
        self.dropout = dropout

    def reset_parameters(self) -> None:
        for weight in self.parameters():
            nn.init.xavier_uniform_(weight)

    def forward(self, x: Features, edges: EdgeList) -> Tensor:
        h = self.lin(x).unflatten(-1, self.att_src.shape)
        score = pair_sums((h * self.att_src).sum(-1), (h * self.att_dst).sum(-1), edges)
        weight = softmax(F.leaky_relu(score, 0.2), edges)
        weight = dropout_dense(weight, self.dropout, self.training)
        return weighted_sums(weight, h, edges)
