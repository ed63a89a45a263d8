"""Weighted sums over the edges of a node; twin of :mod:`nfgnn.nn.edge_list`.

Every edge has a weight per head. A program computes one node, for about 128 values, and reads the
values of its neighbours where they are. So no tensor has a row of channels per edge, and the sums
have the same bits whenever they are computed again.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from nfgnn.kernels.attention import head_blocks, heads_of_program

_ENTRIES = 8  # edges that are read at a time


@triton.jit
def _edges(others, edges, start, length, first, ENTRIES: tl.constexpr):
    """Return the other end and the number of the next edges, and which of them exist."""
    entry = first + tl.arange(0, ENTRIES)
    inside = entry < length
    other = tl.load(others + start + entry, mask=inside, other=0).to(tl.int64)
    edge = tl.load(edges + start + entry, mask=inside, other=0).to(tl.int64)
    return other, edge, inside


@triton.jit
def _values(x, other, head, heads, c, channels, both):
    """Return the values of the other ends, ``[entries, heads, channels]``."""
    place = (other[:, None] * heads + head[None, :])[:, :, None] * channels + c[None, None, :]
    mask = both[:, :, None] & (c < channels)[None, None, :]
    return tl.load(x + place, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def _weighted_sums_kernel(
    indptr, others, edges, weight, x, out, heads, channels,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    head, head_mask = heads_of_program(heads, HEADS)
    c = tl.arange(0, CHANNELS)
    start = tl.load(indptr + row)
    length = tl.load(indptr + row + 1) - start
    result = tl.zeros((HEADS, CHANNELS), tl.float32)
    for first in range(0, length, ENTRIES):
        other, edge, inside = _edges(others, edges, start, length, first, ENTRIES)
        both = inside[:, None] & head_mask[None, :]
        factor_place = edge[:, None] * heads + head[None, :]
        factor = tl.load(weight + factor_place, mask=both, other=0.0).to(tl.float32)
        value = _values(x, other, head, heads, c, channels, both)
        result += tl.sum(factor[:, :, None] * value, 0)
    place = (row * heads + head)[:, None] * channels + c[None, :]
    tl.store(out + place, result, mask=head_mask[:, None] & (c < channels)[None, :])


@triton.jit
def _weight_gradient_kernel(
    indptr, others, edges, grad, x, d_weight, heads, channels,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """Compute the products of the gradient of a row with the values of its neighbours."""
    row = tl.program_id(0).to(tl.int64)
    head, head_mask = heads_of_program(heads, HEADS)
    c = tl.arange(0, CHANNELS)
    start = tl.load(indptr + row)
    length = tl.load(indptr + row + 1) - start
    place = (row * heads + head)[:, None] * channels + c[None, :]
    mask = head_mask[:, None] & (c < channels)[None, :]
    d = tl.load(grad + place, mask=mask, other=0.0).to(tl.float32)
    for first in range(0, length, ENTRIES):
        other, edge, inside = _edges(others, edges, start, length, first, ENTRIES)
        both = inside[:, None] & head_mask[None, :]
        value = _values(x, other, head, heads, c, channels, both)
        product = tl.sum(d[None, :, :] * value, 2)
        tl.store(d_weight + edge[:, None] * heads + head[None, :], product, mask=both)


def weighted_sums(
    indptr: Tensor, others: Tensor, edges: Tensor, weight: Tensor, x: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the sums of ``weight[edge] * x[other]`` of every row, ``[rows, heads, channels]``.

    Args:
        indptr, others, edges: the other ends of the edges of every row, and their numbers.
        weight: ``[edges, heads]``.
        x: ``[n, heads, channels]``.
        dtype: precision of the sums.
    """
    _, heads, channels = x.shape
    rows = indptr.numel() - 1
    out = torch.empty(rows, heads, channels, dtype=dtype, device=x.device)
    block_heads, block_channels = head_blocks(heads, channels)
    _weighted_sums_kernel[(rows, triton.cdiv(heads, block_heads))](
        indptr, others, edges, weight, x, out, heads, channels,
        block_heads, block_channels, _ENTRIES, num_warps=1,
    )  # fmt: skip
    return out


def weight_gradient(
    indptr: Tensor, others: Tensor, edges: Tensor, grad: Tensor, x: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the products ``grad[row] · x[other]`` of every edge, ``[edges, heads]``.

    Args:
        indptr, others, edges: as for :func:`weighted_sums`.
        grad: ``[rows, heads, channels]``.
        x: ``[n, heads, channels]``.
        dtype: precision of the products.
    """
    rows, heads, channels = grad.shape
    d_weight = torch.empty(edges.numel(), heads, dtype=dtype, device=x.device)
    block_heads, block_channels = head_blocks(heads, channels)
    _weight_gradient_kernel[(rows, triton.cdiv(heads, block_heads))](
        indptr, others, edges, grad, x, d_weight, heads, channels,
        block_heads, block_channels, _ENTRIES, num_warps=1,
    )  # fmt: skip
    return d_weight
