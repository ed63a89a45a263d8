"""Operations on the values of edges; twin of :mod:`nfgnn.nn.sparse_edge_operations`.

Every edge has a value per head. One program handles one node and reads the values of its edges and
neighbours directly. No tensor with a row of channels per edge is allocated, and the same input
gives the same bits.

The rows of a kernel are the edges of every node: ``indptr``, the other ends ``others`` and the
numbers ``edges`` of the edges in the list, as in :class:`nfgnn.nn.edge_list.EdgeRows`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from nfgnn.kernels.attention import head_blocks, heads_of_program

_ENTRIES = 8  # edges that are read at a time, with the channels of a neighbour
_VALUES = 256  # values of edges that are read at a time, without channels


@triton.jit
def _inside(length, first, ENTRIES: tl.constexpr):
    """Return the places of the next edges in the row, and which of them exist."""
    entry = first + tl.arange(0, ENTRIES)
    return entry, entry < length


@triton.jit
def _edge_places(edges, start, length, first, head, head_mask, heads, ENTRIES: tl.constexpr):
    """Return where the values of the next edges are, ``[entries, heads]``, and which exist."""
    entry, inside = _inside(length, first, ENTRIES)
    edge = tl.load(edges + start + entry, mask=inside, other=0).to(tl.int64)
    return edge[:, None] * heads + head[None, :], inside[:, None] & head_mask[None, :]


@triton.jit
def _neighbour_values(
    x, others, start, length, first, head, head_mask, heads, c, channels, ENTRIES: tl.constexpr
):
    """Return the values of the next neighbours, ``[entries, heads, channels]``."""
    entry, inside = _inside(length, first, ENTRIES)
    other = tl.load(others + start + entry, mask=inside, other=0).to(tl.int64)
    place = (other[:, None] * heads + head[None, :])[:, :, None] * channels + c[None, None, :]
    both = inside[:, None] & head_mask[None, :]
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
        place, mask = _edge_places(edges, start, length, first, head, head_mask, heads, ENTRIES)
        factor = tl.load(weight + place, mask=mask, other=0.0).to(tl.float32)
        value = _neighbour_values(
            x, others, start, length, first, head, head_mask, heads, c, channels, ENTRIES
        )
        result += tl.sum(factor[:, :, None] * value, 0)
    out_place = (row * heads + head)[:, None] * channels + c[None, :]
    tl.store(out + out_place, result, mask=head_mask[:, None] & (c < channels)[None, :])


@triton.jit
def _edge_products_kernel(
    indptr, others, edges, grad, x, d_weight, heads, channels,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """Compute the products of the gradient of a row with the values of its neighbours."""
    row = tl.program_id(0).to(tl.int64)
    head, head_mask = heads_of_program(heads, HEADS)
    c = tl.arange(0, CHANNELS)
    start = tl.load(indptr + row)
    length = tl.load(indptr + row + 1) - start
    own_place = (row * heads + head)[:, None] * channels + c[None, :]
    own_mask = head_mask[:, None] & (c < channels)[None, :]
    own = tl.load(grad + own_place, mask=own_mask, other=0.0).to(tl.float32)
    for first in range(0, length, ENTRIES):
        place, mask = _edge_places(edges, start, length, first, head, head_mask, heads, ENTRIES)
        value = _neighbour_values(
            x, others, start, length, first, head, head_mask, heads, c, channels, ENTRIES
        )
        tl.store(d_weight + place, tl.sum(own[None, :, :] * value, 2), mask=mask)


@triton.jit
def _edge_sums_kernel(indptr, edges, value, out, heads, HEADS: tl.constexpr, ENTRIES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    head, head_mask = heads_of_program(heads, HEADS)
    start = tl.load(indptr + row)
    length = tl.load(indptr + row + 1) - start
    result = tl.zeros((HEADS,), tl.float32)
    for first in range(0, length, ENTRIES):
        place, mask = _edge_places(edges, start, length, first, head, head_mask, heads, ENTRIES)
        result += tl.sum(tl.load(value + place, mask=mask, other=0.0).to(tl.float32), 0)
    tl.store(out + row * heads + head, result, mask=head_mask)


@triton.jit
def _softmax_kernel(
    indptr, edges, score, weight, heads, HEADS: tl.constexpr, ENTRIES: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    head, head_mask = heads_of_program(heads, HEADS)
    start = tl.load(indptr + row)
    length = tl.load(indptr + row + 1) - start
    # The largest score is subtracted, so that no exponential overflows.
    largest = tl.full((HEADS,), -1e30, tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    for first in range(0, length, ENTRIES):
        place, mask = _edge_places(edges, start, length, first, head, head_mask, heads, ENTRIES)
        value = tl.load(score + place, mask=mask, other=-1e30).to(tl.float32)
        larger = tl.maximum(largest, tl.max(value, 0))
        part = tl.where(mask, tl.exp(value - larger[None, :]), 0.0)
        total = total * tl.exp(largest - larger) + tl.sum(part, 0)
        largest = larger
    for first in range(0, length, ENTRIES):
        place, mask = _edge_places(edges, start, length, first, head, head_mask, heads, ENTRIES)
        value = tl.load(score + place, mask=mask, other=-1e30).to(tl.float32)
        # Of heads that do not exist, the total is 0. If a score is NaN, so are all weights.
        share = tl.exp(value - largest[None, :]) / tl.where(total == 0, 1.0, total)[None, :]
        tl.store(weight + place, share, mask=mask)


@triton.jit
def _softmax_gradient_kernel(
    indptr, edges, grad, weight, d_score, heads, HEADS: tl.constexpr, ENTRIES: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    head, head_mask = heads_of_program(heads, HEADS)
    start = tl.load(indptr + row)
    length = tl.load(indptr + row + 1) - start
    along = tl.zeros((HEADS,), tl.float32)
    for first in range(0, length, ENTRIES):
        place, mask = _edge_places(edges, start, length, first, head, head_mask, heads, ENTRIES)
        share = tl.load(weight + place, mask=mask, other=0.0).to(tl.float32)
        along += tl.sum(share * tl.load(grad + place, mask=mask, other=0.0).to(tl.float32), 0)
    for first in range(0, length, ENTRIES):
        place, mask = _edge_places(edges, start, length, first, head, head_mask, heads, ENTRIES)
        share = tl.load(weight + place, mask=mask, other=0.0).to(tl.float32)
        change = tl.load(grad + place, mask=mask, other=0.0).to(tl.float32) - along[None, :]
        tl.store(d_score + place, share * change, mask=mask)


def weighted_sums(
    indptr: Tensor, others: Tensor, edges: Tensor, weight: Tensor, x: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the sums of ``weight[edge] * x[other]`` of every row, ``[rows, heads, channels]``.

    Args:
        indptr, others, edges: the rows.
        weight: ``[edges, heads]``.
        x: ``[n, heads, channels]``.
        dtype: precision of the result. The sums are float32.
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


def edge_products(
    indptr: Tensor, others: Tensor, edges: Tensor, grad: Tensor, x: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the products ``grad[row] · x[other]`` of every edge, ``[edges, heads]``.

    Args:
        indptr, others, edges: the rows.
        grad: ``[rows, heads, channels]``.
        x: ``[n, heads, channels]``.
        dtype: precision of the result. The products are float32.
    """
    rows, heads, channels = grad.shape
    d_weight = torch.empty(edges.numel(), heads, dtype=dtype, device=x.device)
    block_heads, block_channels = head_blocks(heads, channels)
    _edge_products_kernel[(rows, triton.cdiv(heads, block_heads))](
        indptr, others, edges, grad, x, d_weight, heads, channels,
        block_heads, block_channels, _ENTRIES, num_warps=1,
    )  # fmt: skip
    return d_weight


def edge_sums(indptr: Tensor, edges: Tensor, value: Tensor) -> Tensor:
    """Return the sums of ``value[edge]`` of every row, ``[rows, heads]``."""
    rows = indptr.numel() - 1
    heads = value.shape[1]
    out = torch.empty(rows, heads, dtype=value.dtype, device=value.device)
    block_heads, entries = _value_blocks(heads)
    _edge_sums_kernel[(rows, triton.cdiv(heads, block_heads))](
        indptr, edges, value, out, heads, block_heads, entries, num_warps=1
    )
    return out


def softmax(indptr: Tensor, edges: Tensor, score: Tensor) -> Tensor:
    """Return the softmax of ``score[edge]`` over the edges of every row, ``[edges, heads]``."""
    heads = score.shape[1]
    weight = torch.empty_like(score)
    block_heads, entries = _value_blocks(heads)
    _softmax_kernel[(indptr.numel() - 1, triton.cdiv(heads, block_heads))](
        indptr, edges, score, weight, heads, block_heads, entries, num_warps=1
    )
    return weight


def softmax_gradient(indptr: Tensor, edges: Tensor, grad: Tensor, weight: Tensor) -> Tensor:
    """Return the gradient of the scores, ``[edges, heads]``; ``weight`` is their softmax."""
    heads = weight.shape[1]
    d_score = torch.empty_like(weight)
    block_heads, entries = _value_blocks(heads)
    _softmax_gradient_kernel[(indptr.numel() - 1, triton.cdiv(heads, block_heads))](
        indptr, edges, grad, weight, d_score, heads, block_heads, entries, num_warps=1
    )
    return d_score


def _value_blocks(heads: int) -> tuple[int, int]:
    """Return heads and edges that a program reads at a time."""
    block_heads = min(int(triton.next_power_of_2(heads)), 32)
    return block_heads, min(_VALUES // block_heads, 32)
