"""A linear classifier on the rows of the adjacency matrix."""

from torch import Tensor

from nfgnn.nn.adjacency_features import adjacency_features
from nfgnn.nn.argument_checks import check_counts
from nfgnn.nn.features import Features
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel
from nfgnn.spectral import ScaledLaplacian


@register_model("To Join or Not to Join: The Illusion of Privacy in Social Networks", 2009, "O(mc)")
class LINK(NodeModel):
    r"""Logistic regression on the rows of the adjacency matrix
    (`Zheleva and Getoor <https://doi.org/10.1145/1526709.1526781>`_).

    .. math:: Z = A W + b, \qquad W ∈ ℝ^{n × C}

    The features are not used. Every node has a weight, so the model can only be applied to the
    graph that it was trained on.

    Args:
        in_channels (int): not used.
        out_channels (int): number of classes.
        num_nodes (int): number of nodes. The trainer sets it.
    """

    batchable = True
    weights_per_node = True
    reads_features = False

    def __init__(self, in_channels: int, out_channels: int, num_nodes: int) -> None:
        super().__init__()
        check_counts(out_channels=out_channels)
        self.lin = Linear(num_nodes, out_channels)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()

    def forward(
        self,
        x: Features,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """"""
        in_features = self.lin.in_features
        dtype = self.lin.weight.dtype
        rows = adjacency_features(edge_index, edge_weight, x.shape[0], in_features, dtype)
        logits: Tensor = self.lin(rows)
        return logits
