"""An MLP that also reads the rows of the adjacency matrix."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.adjacency_features import adjacency_features
from nfgnn.nn.dropout import dropout
from nfgnn.nn.features import Features
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.mlp import MLP

LINK_CHOICES = ("none", "raw", "row", "scores")
"""Values of the setting ``link``; ``"none"`` is the plain :class:`MLP`."""


class AdjacencyMLP(MLP):
    r"""An :class:`MLP` with a second input, the rows of the adjacency matrix.

    They enter the hidden layer

    .. math:: H = \mathrm{ReLU}\big(\mathrm{norm}(X W_1 + A W_A + b_1)\big), \qquad
              Z = H W_2 + b_2

    where ``norm`` is batch normalisation by the statistics of the present graph; or the scores

    .. math:: Z = \mathrm{MLP}(X) + A W_A

    as in the logistic regression of :class:`LINK`. Every node has a row in :math:`W_A`, so the
    model can only be applied to the graph that it was trained on.

    Args:
        in_channels, out_channels, hidden_channels, num_layers, dropout: see :class:`MLP`. The
            dropout also applies to adjacency rows that enter the hidden layer.
        link (str): ``"raw"``: A enters the hidden layer; ``"row"``: so does A with rows that sum to
            one; ``"scores"``: A enters the scores.
        num_nodes (int): number of nodes.
    """

    weights_per_node = True
    reads_edges = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int,
        num_layers: int,
        dropout: float,
        link: str,
        num_nodes: int | None,
    ) -> None:
        super().__init__(in_channels, out_channels, hidden_channels, num_layers, dropout)
        if link not in LINK_CHOICES:
            raise ValueError(f"unknown link '{link}': choose one of {', '.join(LINK_CHOICES)}")
        if num_nodes is None:
            raise ValueError(f"link '{link}' needs num_nodes")
        self.link = link
        self.norm: nn.BatchNorm1d | None = None
        if link == "scores":
            self.lin_link = Linear(num_nodes, out_channels, bias=False)
        elif num_layers >= 2:
            self.lin_link = Linear(num_nodes, hidden_channels, bias=False)
            self.norm = nn.BatchNorm1d(hidden_channels, track_running_stats=False)
        else:
            raise ValueError(f"link '{link}' needs num_layers >= 2")

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.lin_link.reset_parameters()
        if self.norm is not None:
            self.norm.reset_parameters()

    def forward(
        self, x: Features, edge_index: Any = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        """"""
        rows = adjacency_features(
            edge_index,
            edge_weight,
            x.shape[0],
            self.lin_link.in_features,
            self.lin_link.weight.dtype,
            normalize=self.link == "row",
        )
        if self.norm is None:
            scores: Tensor = super().forward(x) + self.lin_link(rows)
            return scores
        first, *others = self.linear_maps()
        h = first(dropout(x, self.dropout, self.training))
        h = h + self.lin_link(dropout(rows, self.dropout, self.training))
        return self.layers(F.relu(self.norm(h)), others)

    def forward_pair(
        self, x: Features, edge_index: Any = None, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        return self._two_passes(x, edge_index, edge_weight)
