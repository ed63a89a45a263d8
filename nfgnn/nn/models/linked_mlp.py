"""MLPs that also read whom a node is linked to."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.dropout import dropout
from nfgnn.nn.linear import Linear
from nfgnn.nn.links import link_matrix
from nfgnn.nn.models.mlp import MLP
from nfgnn.propagate import CSR, ScaledLaplacian


class LinkedMLP(MLP):
    r"""The :class:`MLP` with a link branch: the rows of the adjacency matrix go through a linear map of their own.

    .. math:: H = \mathrm{ReLU}\big(\mathrm{norm}(X W_1 + A W_A + b_1)\big), \qquad Z = H W_2 + b_2

    ``norm`` is batch normalisation by the statistics of the graph at hand. Every node has a row of :math:`W_A` of its
    own, so the model knows the nodes of one graph only.

    Args:
        in_channels, out_channels, hidden_channels, num_layers, dropout: of :class:`MLP`; the links are dropped at the
            same rate as the features.
        num_nodes (int): number of nodes.
        link (str): ``"raw"`` takes A itself, ``"row"`` rows that sum to one.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int,
        num_layers: int,
        dropout: float,
        num_nodes: int | None,
        link: str = "raw",
    ) -> None:
        super().__init__(in_channels, out_channels, hidden_channels, num_layers, dropout)
        if num_nodes is None or num_layers < 2:
            raise ValueError("a link branch needs num_nodes and a hidden layer (num_layers of 2 or more)")
        self.link = link
        self.lin_link = Linear(num_nodes, hidden_channels, bias=False)
        self.norm = nn.BatchNorm1d(hidden_channels, track_running_stats=False)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.lin_link.reset_parameters()
        self.norm.reset_parameters()

    def forward(
        self, x: Tensor | CSR, edge_index: Tensor | ScaledLaplacian | None = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        """"""
        assert edge_index is not None
        known, dtype = self.lin_link.in_features, self.lin_link.weight.dtype
        links = link_matrix(edge_index, edge_weight, x.shape[0], known, dtype, self.link)
        first, *hidden = self.lins
        h = first(dropout(x, self.dropout, self.training)) + self.lin_link(dropout(links, self.dropout, self.training))
        h = F.relu(self.norm(h))
        for lin in hidden[:-1]:
            h = F.relu(lin(dropout(h, self.dropout, self.training)))
        out: Tensor = hidden[-1](dropout(h, self.dropout, self.training))
        return out


class LinkedScores(MLP):
    r"""The :class:`MLP` with :class:`LINK`'s logistic regression on whom a node is linked to, added to its scores.

    .. math:: Z = \mathrm{MLP}(X) + A W_A

    Args:
        in_channels, out_channels, hidden_channels, num_layers, dropout: of :class:`MLP`. Links are not dropped.
        num_nodes (int): number of nodes.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int,
        num_layers: int,
        dropout: float,
        num_nodes: int | None,
    ) -> None:
        super().__init__(in_channels, out_channels, hidden_channels, num_layers, dropout)
        if num_nodes is None:
            raise ValueError("a link branch needs num_nodes")
        self.lin_link = Linear(num_nodes, out_channels, bias=False)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.lin_link.reset_parameters()

    def forward(
        self, x: Tensor | CSR, edge_index: Tensor | ScaledLaplacian | None = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        """"""
        assert edge_index is not None
        known, dtype = self.lin_link.in_features, self.lin_link.weight.dtype
        links: Tensor = self.lin_link(link_matrix(edge_index, edge_weight, x.shape[0], known, dtype))
        return super().forward(x) + links


LINKS: dict[str, Callable[..., MLP]] = {
    "none": lambda *sizes: MLP(*sizes[:-1]),
    "raw": partial(LinkedMLP, link="raw"),
    "row": partial(LinkedMLP, link="row"),
    "scores": LinkedScores,
}
"""The forms of a link branch, by name."""


def linked_mlp(link: str, *sizes: Any) -> MLP:
    """The MLP with this link branch; ``sizes`` are the MLP's arguments and the number of nodes."""
    if link not in LINKS:
        raise ValueError(f"unknown link '{link}': choose one of {', '.join(LINKS)}")
    return LINKS[link](*sizes)
