"""An MLP that also reads whom a node is linked to."""

import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.dropout import dropout
from nfgnn.nn.linear import Linear
from nfgnn.nn.links import link_matrix
from nfgnn.nn.models.mlp import MLP
from nfgnn.spectral import CSR, ScaledLaplacian

LINKS = ("none", "raw", "row", "scores")


class LinkedMLP(MLP):
    r"""The :class:`MLP` with a link branch: the rows of the adjacency matrix go through a linear map of their own,

    .. math:: H = \mathrm{ReLU}\big(\mathrm{norm}(X W_1 + A W_A + b_1)\big), \qquad Z = H W_2 + b_2

    into the hidden layer, where ``norm`` is batch normalisation by the statistics of the graph at hand; or

    .. math:: Z = \mathrm{MLP}(X) + A W_A

    into the scores, which is :class:`LINK`'s logistic regression beside the MLP. Every node has a row of :math:`W_A` of
    its own, so the model knows the nodes of one graph only.

    Args:
        in_channels, out_channels, hidden_channels, num_layers, dropout: of :class:`MLP`; links that go into the hidden
            layer are dropped at the same rate as the features.
        link (str): ``"raw"`` takes A itself into the hidden layer, ``"row"`` rows that sum to one, ``"scores"`` takes A
            itself into the scores.
        num_nodes (int): number of nodes.
    """

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
        if link not in LINKS:
            raise ValueError(f"unknown link '{link}': choose one of {', '.join(LINKS)}")
        self.link, hidden = link, link != "scores"
        if num_nodes is None or (hidden and num_layers < 2):
            raise ValueError(
                f"link '{link}' needs num_nodes{' and num_layers of 2 or more' if hidden else ''}"
            )
        self.lin_link = Linear(num_nodes, hidden_channels if hidden else out_channels, bias=False)
        self.norm = nn.BatchNorm1d(hidden_channels, track_running_stats=False) if hidden else None

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.lin_link.reset_parameters()
        if self.norm is not None:
            self.norm.reset_parameters()

    def forward(
        self,
        x: Tensor | CSR,
        edge_index: Tensor | ScaledLaplacian | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """"""
        assert edge_index is not None
        known, dtype = self.lin_link.in_features, self.lin_link.weight.dtype
        links = link_matrix(
            edge_index,
            edge_weight,
            x.shape[0],
            known,
            dtype,
            "row" if self.link == "row" else "raw",
        )
        if self.norm is None:
            scores: Tensor = super().forward(x) + self.lin_link(links)
            return scores
        first, *hidden = self.lins
        h = first(dropout(x, self.dropout, self.training)) + self.lin_link(
            dropout(links, self.dropout, self.training)
        )
        h = F.relu(self.norm(h))
        for lin in hidden[:-1]:
            h = F.relu(lin(dropout(h, self.dropout, self.training)))
        out: Tensor = hidden[-1](dropout(h, self.dropout, self.training))
        return out
