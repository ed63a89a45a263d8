"""Operations on the values of edges as sparse products, for a CPU.

Twin of :mod:`nfgnn.kernels.edge_operations`, with the same functions. No tensor has a row of
channels per edge. The rows are the edges of every node: ``indptr``, the other ends ``others`` and
the numbers ``edges`` of the edges in the list, as in :class:`nfgnn.nn.edge_list.EdgeRows`. Values
in half precision are summed in float32.
"""

import torch
from torch import Tensor

from nfgnn.spectral import CSR


def weighted_sums(
    indptr: Tensor, others: Tensor, edges: Tensor, weight: Tensor, x: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the sums of ``weight[edge] * x[other]`` of every row, ``[rows, heads, channels]``.

    Args:
        indptr, others, edges: the rows.
        weight: ``[edges, heads]``.
        x: ``[n, heads, channels]``.
        dtype: precision of the result.
    """
    nodes, heads, channels = x.shape
    rows = indptr.numel() - 1
    out = torch.empty(rows, heads, channels, dtype=dtype)
    in_order = weight.index_select(0, edges).to(_precision(dtype))
    for head in range(heads):
        # A head is a matrix of its own.
        matrix = CSR(indptr, others, in_order[:, head].contiguous(), (rows, nodes))
        out[:, head] = matrix @ x[:, head].to(in_order.dtype)
    return out


def edge_products(
    indptr: Tensor, others: Tensor, edges: Tensor, grad: Tensor, x: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the products ``grad[row] · x[other]`` of every edge, ``[edges, heads]``.

    Args:
        indptr, others, edges: the rows.
        grad: ``[rows, heads, channels]``.
        x: ``[n, heads, channels]``.
        dtype: precision of the result.
    """
    rows, heads, _ = grad.shape
    precision = _precision(torch.promote_types(grad.dtype, x.dtype))
    pattern = CSR(indptr, others, torch.zeros(edges.numel(), dtype=precision), (rows, x.shape[0]))
    in_order = torch.empty(edges.numel(), heads, dtype=dtype)
    for head in range(heads):
        left = grad[:, head].to(precision)
        right = x[:, head].to(precision)
        products = torch.sparse.sampled_addmm(pattern.tensor, left, right.T, beta=0.0)
        in_order[:, head] = products.values()
    return _by_edge(in_order, edges)


def edge_sums(indptr: Tensor, edges: Tensor, value: Tensor) -> Tensor:
    """Return the sums of ``value[edge]`` of every row, ``[rows, heads]``."""
    precision = _precision(value.dtype)
    shape = (indptr.numel() - 1, value.shape[0])
    matrix = CSR(indptr, edges, torch.ones(edges.numel(), dtype=precision), shape)
    return (matrix @ value.to(precision)).to(value.dtype)


def softmax(indptr: Tensor, edges: Tensor, score: Tensor) -> Tensor:
    """Return the softmax of ``score[edge]`` over the edges of every row, ``[edges, heads]``."""
    row = _row_of_entry(indptr)
    in_order = score.index_select(0, edges).to(_precision(score.dtype))
    # The largest score is subtracted, so that no exponential overflows. Memory for another value
    # per edge costs more than the arithmetic, so that is done in place.
    largest = torch.segment_reduce(in_order, "max", offsets=indptr)
    in_order.sub_(largest.index_select(0, row)).exp_()
    total = torch.segment_reduce(in_order, "sum", offsets=indptr)
    in_order.div_(total.index_select(0, row))
    return _by_edge(in_order.to(score.dtype), edges)


def softmax_gradient(indptr: Tensor, edges: Tensor, grad: Tensor, weight: Tensor) -> Tensor:
    """Return the gradient of the scores, ``[edges, heads]``; ``weight`` is their softmax."""
    d_score = weight * grad
    along = edge_sums(indptr, edges, d_score)
    of_edge = _by_edge(_row_of_entry(indptr), edges)
    return d_score.addcmul_(weight, along.index_select(0, of_edge), value=-1)


def _precision(dtype: torch.dtype) -> torch.dtype:
    """Return the precision of sums: that of the values, but at least float32."""
    return torch.promote_types(dtype, torch.float32)


def _row_of_entry(indptr: Tensor) -> Tensor:
    return torch.repeat_interleave(indptr.diff())


def _by_edge(in_order: Tensor, edges: Tensor) -> Tensor:
    """Return values of the entries of rows in the order of the edges."""
    return torch.empty_like(in_order).index_copy_(0, edges.long(), in_order)
