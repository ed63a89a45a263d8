"""Rows of the adjacency matrix as sparse node features."""

import torch
from torch import Tensor

from nfgnn.errors import UserError
from nfgnn.spectral import CSR, ScaledLaplacian, derived_laplacian
from nfgnn.tensor_cache import TensorCache

_CACHE = TensorCache()


def adjacency_features(
    edge_index: Tensor | ScaledLaplacian,
    edge_weight: Tensor | None,
    num_nodes: int,
    in_features: int,
    dtype: torch.dtype,
    normalize: bool = False,
) -> CSR:
    """Return the adjacency matrix A, cached for the life of the graph.

    Args:
        edge_index, edge_weight, num_nodes: the graph.
        in_features: number of nodes that the model was trained on. It has a weight for each.
        dtype: type of the values.
        normalize: whether rows are divided by their sum.
    """
    if num_nodes != in_features:
        raise UserError(
            "a model with a weight for every node can only be applied to the graph that it was "
            f"trained on: it has {in_features} nodes, this graph has {num_nodes}"
        )
    # The filter of the same model may need self-loops.
    graph = derived_laplacian(edge_index, edge_weight, num_nodes)
    if graph.entries is not None:
        raise UserError(
            "a model with a weight for every node has no gradient for edge weights: pass "
            "edge_weight.detach()"
        )

    def make() -> CSR:
        weight = torch.ones_like(graph.indices) if graph.weight is None else graph.weight
        if normalize:
            # scale² is 1 / degree, so the rows sum to one.
            weight = weight * torch.repeat_interleave(graph.scale**2, graph.indptr.diff())
        # A tensor of its own: the cached value must not contain what it is found by.
        indices = graph.indices.detach()
        return CSR(graph.indptr, indices, weight.to(dtype), (num_nodes, num_nodes))

    return _CACHE.lookup((graph.indices, graph.weight), (dtype, normalize), make)
