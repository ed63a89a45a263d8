"""A linear classifier on links."""

import torch
from torch import Tensor, nn

from nfgnn.errors import UserError
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.registry import register_model
from nfgnn.propagate import CSR, ScaledLaplacian, scaled_laplacian
from nfgnn.propagate.cache import TensorCache

_CACHE = TensorCache()


@register_model("To Join or Not to Join: The Illusion of Privacy in Social Networks", 2009, "O(mc)", many_seeds=True)
class LINK(nn.Module):
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

    def __init__(self, in_channels: int, out_channels: int, num_nodes: int) -> None:
        super().__init__()
        self.lin = Linear(num_nodes, out_channels)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor | ScaledLaplacian, edge_weight: Tensor | None = None) -> Tensor:
        """"""
        n = x.shape[0]
        if n != self.lin.in_features:
            raise UserError(f"LINK knows the {self.lin.in_features} nodes it was trained on, this graph has {n}")
        graph = scaled_laplacian(edge_index, edge_weight, n)
        return self.lin(_adjacency(graph, self.lin.weight.dtype))  # type: ignore[no-any-return]


def _adjacency(graph: ScaledLaplacian, dtype: torch.dtype) -> CSR:
    """A itself, not normalised; made once per graph, since its transpose is needed in every backward pass."""
    n = graph.num_nodes

    def make() -> CSR:
        weight = torch.ones_like(graph.indices) if graph.weight is None else graph.weight
        return CSR(graph.indptr, graph.indices, weight.to(dtype), (n, n))

    return _CACHE.lookup((graph.indices, graph.weight), dtype, make)
