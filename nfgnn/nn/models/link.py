"""A linear classifier on links."""

from torch import Tensor

from nfgnn.nn.linear import Linear
from nfgnn.nn.links import link_matrix
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import Features, NodeModel
from nfgnn.spectral import ScaledLaplacian


@register_model("To Join or Not to Join: The Illusion of Privacy in Social Networks", 2009, "O(mc)")
class LINK(NodeModel):
    r"""Logistic regression on the rows of the adjacency matrix (`Zheleva and Getoor
    <https://doi.org/10.1145/1526709.1526781>`_): whom a node is linked to decides, not what it is like.

    .. math:: Z = A W + b, \qquad W ∈ ℝ^{n × C}

    The features are not looked at. Every node has a weight of its own, so the model knows the nodes of one
    graph only; the product costs the stored edges.

    Args:
        in_channels (int): not used.
        out_channels (int): number of classes.
        num_nodes (int): number of nodes; the trainer fills it in.
    """

    batchable = True

    def __init__(self, in_channels: int, out_channels: int, num_nodes: int) -> None:
        super().__init__()
        self.lin = Linear(num_nodes, out_channels)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()

    def forward(
        self, x: Features, edge_index: Tensor | ScaledLaplacian, edge_weight: Tensor | None = None
    ) -> Tensor:
        """"""
        known, dtype = self.lin.in_features, self.lin.weight.dtype
        return self.lin(link_matrix(edge_index, edge_weight, x.shape[0], known, dtype))  # type: ignore[no-any-return]
