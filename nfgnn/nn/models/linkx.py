"""An MLP on features and an MLP on the rows of the adjacency matrix."""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.adjacency_features import adjacency_features
from nfgnn.nn.argument_checks import check_counts, check_rates
from nfgnn.nn.dropout import dropout_dense
from nfgnn.nn.features import Features
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel
from nfgnn.spectral import ScaledLaplacian


@register_model(
    "Large Scale Learning on Non-Homophilous Graphs: New Benchmarks and Strong Simple Methods",
    2021,
    "O(nfh + mh)",
)
class LINKX(NodeModel):
    r"""Adjacency and features are embedded separately and then joined
    (`Lim et al. <https://arxiv.org/abs/2110.14446>`_).

    .. math:: H_A = \mathrm{MLP}_A(A), \qquad H_X = \mathrm{MLP}_X(X), \qquad
              Z = \mathrm{MLP}_f\big(\mathrm{ReLU}(W [H_A ‖ H_X] + b + H_A + H_X)\big)

    ReLU and batch normalisation follow every hidden layer of the MLPs, as in
    :class:`torch_geometric.nn.models.LINKX`. The normalisation uses the statistics of the present
    graph, also in evaluation. Every node has a weight, so the model can only be applied to the
    graph that it was trained on.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        num_nodes (int): number of nodes. The trainer sets it.
        hidden_channels (int): width of all hidden layers. (default: ``64``)
        num_layers (int): number of layers of the last MLP. (default: ``2``)
        num_edge_layers (int): number of layers of the MLP on A. (default: ``1``)
        num_node_layers (int): number of layers of the MLP on X. (default: ``1``)
        dropout (float): dropout on the hidden layers of the last MLP. (default: ``0.5``)
    """

    batchable = True
    weights_per_node = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_nodes: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        num_edge_layers: int = 1,
        num_node_layers: int = 1,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        check_counts(in_channels=in_channels, out_channels=out_channels)
        check_counts(
            hidden_channels=hidden_channels,
            num_layers=num_layers,
            num_edge_layers=num_edge_layers,
            num_node_layers=num_node_layers,
        )
        check_rates(dropout=dropout)
        self.num_nodes = num_nodes
        self.edge_mlp = _NormalisedMLP([num_nodes, *[hidden_channels] * num_edge_layers])
        self.node_mlp = _NormalisedMLP([in_channels, *[hidden_channels] * num_node_layers])
        self.join = Linear(2 * hidden_channels, hidden_channels)
        self.final_mlp = _NormalisedMLP([*[hidden_channels] * num_layers, out_channels], dropout)

    def reset_parameters(self) -> None:
        for module in self.modules():
            if isinstance(module, Linear | nn.BatchNorm1d):
                module.reset_parameters()

    def forward(
        self,
        x: Features,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """"""
        dtype = self.join.weight.dtype
        rows = adjacency_features(edge_index, edge_weight, x.shape[0], self.num_nodes, dtype)
        edges = self.edge_mlp(rows)
        nodes = self.node_mlp(x)
        joined = self.join(torch.cat([edges, nodes], -1))
        out: Tensor = self.final_mlp(F.relu(joined + edges + nodes))
        return out


class _NormalisedMLP(nn.Module):
    """Linear maps with ReLU, batch normalisation and dropout between them."""

    def __init__(self, widths: Sequence[int], dropout: float = 0.0) -> None:
        super().__init__()
        self.lins = nn.ModuleList(Linear(a, b) for a, b in pairwise(widths))
        # Running statistics would be buffers, which batched runs do not update.
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(width, track_running_stats=False) for width in widths[1:-1]
        )
        self.dropout = dropout

    def forward(self, x: Features) -> Tensor:
        *hidden, last = self.lins
        for lin, norm in zip(hidden, self.norms):
            x = dropout_dense(norm(F.relu(lin(x))), self.dropout, self.training)
        out: Tensor = last(x)
        return out
