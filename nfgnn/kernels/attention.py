"""Attention over the neighbours of a node; twin of :mod:`nfgnn.nn.attention`.

The pattern of the graph is symmetric. So each of the three kernels takes the rows one by one: the
sums over neighbours in the forward pass, the gradient for a node as target, and, with the roles of
the two ends exchanged, the gradients for a node as source. No weight of an edge is ever stored.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

_ENTRIES = 8  # neighbours that are read at a time


@triton.jit
def _leaky(x, slope):
    return tl.where(x > 0, x, x * slope)


@triton.jit
def heads_of_program(heads, HEADS: tl.constexpr):
    """Return the heads of this program and which of them exist."""
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    return head, head < heads


@triton.jit
def _neighbours(indices, start, length, first, ENTRIES: tl.constexpr):
    """Return the next neighbours and which of them exist."""
    entry = first + tl.arange(0, ENTRIES)
    inside = entry < length
    return tl.load(indices + start + entry, mask=inside, other=0).to(tl.int64), inside


@triton.jit
def _attend_kernel(
    indptr, indices, source, target, values, out, norm, heads, channels, slope,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """Compute the weighted mean over neighbours and the logarithm of the sum of weights."""
    row = tl.program_id(0).to(tl.int64)
    head, head_mask = heads_of_program(heads, HEADS)
    c = tl.arange(0, CHANNELS)
    start = tl.load(indptr + row)
    length = tl.load(indptr + row + 1) - start
    own = tl.load(target + row * heads + head, mask=head_mask, other=0.0).to(tl.float32)
    best = tl.full((HEADS,), -1e30, tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    result = tl.zeros((HEADS, CHANNELS), tl.float32)
    mask = head_mask[:, None] & (c < channels)[None, :]
    for first in range(0, length, ENTRIES):
        j, inside = _neighbours(indices, start, length, first, ENTRIES)
        both = inside[:, None] & head_mask[None, :]
        other = tl.load(source + j[:, None] * heads + head[None, :], mask=both, other=0.0)
        score = _leaky(own[None, :] + other.to(tl.float32), slope)
        score = tl.where(inside[:, None], score, -1e30)
        # The largest score so far is subtracted, so that no exponential overflows.
        new_best = tl.maximum(best, tl.max(score, 0))
        shrink = tl.exp(best - new_best)
        weight = tl.where(inside[:, None], tl.exp(score - new_best[None, :]), 0.0)
        place = (j[:, None] * heads + head[None, :])[:, :, None] * channels + c[None, None, :]
        value_mask = both[:, :, None] & (c < channels)[None, None, :]
        value = tl.load(values + place, mask=value_mask, other=0.0).to(tl.float32)
        result = result * shrink[:, None] + tl.sum(weight[:, :, None] * value, 0)
        total = total * shrink + tl.sum(weight, 0)
        best = new_best
    safe = tl.where(total > 0, total, 1.0)
    place = (row * heads + head)[:, None] * channels + c[None, :]
    tl.store(out + place, result / safe[:, None], mask=mask)
    tl.store(norm + row * heads + head, best + tl.log(safe), mask=head_mask)


@triton.jit
def _target_gradient_kernel(
    indptr, indices, source, target, values, grad, norm, along, d_target, heads, channels, slope,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """Compute Σ_j ∂e_ij of every row i; ``along`` is the product of gradient and output."""
    row = tl.program_id(0).to(tl.int64)
    head, head_mask = heads_of_program(heads, HEADS)
    c = tl.arange(0, CHANNELS)
    start = tl.load(indptr + row)
    length = tl.load(indptr + row + 1) - start
    place = row * heads + head
    own = tl.load(target + place, mask=head_mask, other=0.0).to(tl.float32)
    own_norm = tl.load(norm + place, mask=head_mask, other=0.0)
    own_along = tl.load(along + place, mask=head_mask, other=0.0)
    mask = head_mask[:, None] & (c < channels)[None, :]
    d = tl.load(grad + place[:, None] * channels + c[None, :], mask=mask, other=0.0)
    d = d.to(tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    for first in range(0, length, ENTRIES):
        j, inside = _neighbours(indices, start, length, first, ENTRIES)
        both = inside[:, None] & head_mask[None, :]
        other_place = j[:, None] * heads + head[None, :]
        raw = own[None, :] + tl.load(source + other_place, mask=both, other=0.0).to(tl.float32)
        weight = tl.where(both, tl.exp(_leaky(raw, slope) - own_norm[None, :]), 0.0)
        value_mask = both[:, :, None] & (c < channels)[None, None, :]
        value = tl.load(
            values + other_place[:, :, None] * channels + c[None, None, :],
            mask=value_mask,
            other=0.0,
        ).to(tl.float32)
        d_weight = tl.sum(d[None, :, :] * value, 2)
        d_score = weight * (d_weight - own_along[None, :])
        total += tl.sum(tl.where(raw > 0, d_score, d_score * slope), 0)
    tl.store(d_target + place, total, mask=head_mask)


@triton.jit
def _source_gradient_kernel(
    indptr, indices, source, target, values, grad, norm, along, d_source, d_values,
    heads, channels, slope,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """Compute Σ_i ∂e_ij and Σ_i α_ij ∂out_i of every node j."""
    row = tl.program_id(0).to(tl.int64)
    head, head_mask = heads_of_program(heads, HEADS)
    c = tl.arange(0, CHANNELS)
    start = tl.load(indptr + row)
    length = tl.load(indptr + row + 1) - start
    place = row * heads + head
    own = tl.load(source + place, mask=head_mask, other=0.0).to(tl.float32)
    mask = head_mask[:, None] & (c < channels)[None, :]
    value = tl.load(values + place[:, None] * channels + c[None, :], mask=mask, other=0.0)
    value = value.to(tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    result = tl.zeros((HEADS, CHANNELS), tl.float32)
    for first in range(0, length, ENTRIES):
        i, inside = _neighbours(indices, start, length, first, ENTRIES)
        both = inside[:, None] & head_mask[None, :]
        other_place = i[:, None] * heads + head[None, :]
        raw = own[None, :] + tl.load(target + other_place, mask=both, other=0.0).to(tl.float32)
        other_norm = tl.load(norm + other_place, mask=both, other=0.0)
        weight = tl.where(both, tl.exp(_leaky(raw, slope) - other_norm), 0.0)
        value_mask = both[:, :, None] & (c < channels)[None, None, :]
        d = tl.load(
            grad + other_place[:, :, None] * channels + c[None, None, :],
            mask=value_mask,
            other=0.0,
        ).to(tl.float32)
        result += tl.sum(weight[:, :, None] * d, 0)
        other_along = tl.load(along + other_place, mask=both, other=0.0)
        d_score = weight * (tl.sum(d * value[None, :, :], 2) - other_along)
        total += tl.sum(tl.where(raw > 0, d_score, d_score * slope), 0)
    tl.store(d_source + place, total, mask=head_mask)
    tl.store(d_values + place[:, None] * channels + c[None, :], result, mask=mask)


def attend(
    indptr: Tensor, indices: Tensor, source: Tensor, target: Tensor, values: Tensor, slope: float
) -> tuple[Tensor, Tensor]:
    """Return the means over neighbours ``[n, heads, channels]`` and log-sums ``[n, heads]``.

    Args:
        indptr, indices: the pattern, which is symmetric.
        source, target: scores of a node as neighbour and as centre, ``[n, heads]``.
        values: ``[n, heads, channels]``.
        slope: of the leaky ReLU.
    """
    n, heads, channels = values.shape
    out = torch.empty_like(values)
    norm = torch.empty(n, heads, dtype=torch.float32, device=values.device)
    block_heads, block_channels = head_blocks(heads, channels)
    _attend_kernel[(n, triton.cdiv(heads, block_heads))](
        indptr, indices, source, target, values, out, norm, heads, channels, slope,
        block_heads, block_channels, _ENTRIES, num_warps=1,
    )  # fmt: skip
    return out, norm


def attend_gradient(
    grad: Tensor,
    indptr: Tensor,
    indices: Tensor,
    source: Tensor,
    target: Tensor,
    values: Tensor,
    out: Tensor,
    norm: Tensor,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients for ``source``, ``target`` and ``values``."""
    n, heads, channels = values.shape
    along = (grad.float() * out.float()).sum(-1)
    d_source = torch.empty_like(source)
    d_target = torch.empty_like(target)
    d_values = torch.empty_like(values)
    block_heads, block_channels = head_blocks(heads, channels)
    grid = (n, triton.cdiv(heads, block_heads))
    _target_gradient_kernel[grid](
        indptr, indices, source, target, values, grad, norm, along, d_target, heads, channels,
        slope, block_heads, block_channels, _ENTRIES, num_warps=1,
    )  # fmt: skip
    _source_gradient_kernel[grid](
        indptr, indices, source, target, values, grad, norm, along, d_source, d_values, heads,
        channels, slope, block_heads, block_channels, _ENTRIES, num_warps=1,
    )  # fmt: skip
    return d_source, d_target, d_values


def head_blocks(heads: int, channels: int) -> tuple[int, int]:
    """Return heads and channels of a program: about 128 values of a node."""
    block_channels = int(triton.next_power_of_2(channels))
    block_heads = max(1, min(int(triton.next_power_of_2(heads)), 128 // block_channels))
    return block_heads, block_channels
