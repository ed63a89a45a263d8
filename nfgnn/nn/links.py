"""Whom a node is linked to, as a sparse matrix that a linear map may read."""

import torch
from torch import Tensor

from nfgnn.errors import UserError
from nfgnn.spectral import CSR, ScaledLaplacian, scaled_laplacian
from nfgnn.tensor_cache import TensorCache

_CACHE = TensorCache()


def link_matrix(
    edge_index: Tensor | ScaledLaplacian,
    edge_weight: Tensor | None,
    num_nodes: int,
    known: int,
    dtype: torch.dtype,
    rows: str = "raw",
) -> CSR:
    """The adjacency matrix A, made once per graph, since its transpose is needed in every backward pass.

    Args:
        edge_index, edge_weight, num_nodes: the graph.
        known: number of nodes that the model has a weight for.
        dtype: of the values.
        rows: ``"raw"`` for A itself, ``"row"`` for rows that sum to one.
    """
    if num_nodes != known:
        raise UserError(
            f"a model of links knows the {known} nodes it was trained on, this graph has {num_nodes}"
        )
    graph = scaled_laplacian(edge_index, edge_weight, num_nodes)

    def make() -> CSR:
        weight = torch.ones_like(graph.indices) if graph.weight is None else graph.weight
        if rows == "row":
            weight = weight * torch.repeat_interleave(graph.scale**2, graph.indptr.diff())
        return CSR(graph.indptr, graph.indices, weight.to(dtype), (num_nodes, num_nodes))

    return _CACHE.lookup((graph.indices, graph.weight), (dtype, rows), make)
