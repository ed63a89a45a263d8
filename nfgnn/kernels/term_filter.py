"""Coefficients and weighted sum of ``TermGate``; twin of :mod:`nfgnn.nn.gates.term_filter`.

A program takes a block of nodes of one run with all their channels, so that every term is read once
in the forward pass and once in the backward pass. Terms are ``[orders, n, runs, channels]``.
"""

import triton
import triton.language as tl
from torch import Tensor

MAX_CHANNELS = 128
"""The widest signal whose channels fit in one program."""


@triton.jit
def _filter_kernel(
    terms, weight, gamma, out, n, runs, channels, orders, order_stride, node_stride,
    RANK: tl.constexpr, NODES: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Compute Z_i = Σ_k η_ik X_ik with η_ik = Σ_j σ(X_ik · W_j) Γ_kj."""
    run = tl.program_id(1)
    node = tl.program_id(0) * NODES + tl.arange(0, NODES)
    c = tl.arange(0, CHANNELS)
    mask = (node < n)[:, None] & (c < channels)[None, :]
    place = (node.to(tl.int64) * runs + run)[:, None] * channels + c[None, :]
    # Terms may be columns of a wider matrix, hence the strides.
    term_place = node.to(tl.int64)[:, None] * node_stride + run * channels + c[None, :]
    total = tl.zeros((NODES, CHANNELS), tl.float32)
    for k in range(orders):
        t = tl.load(terms + tl.cast(k, tl.int64) * order_stride + term_place, mask=mask, other=0.0)
        eta = tl.zeros((NODES,), tl.float32)
        for j in tl.static_range(RANK):
            w = tl.load(weight + (run * channels + c) * RANK + j, mask=c < channels, other=0.0)
            h = tl.sigmoid(tl.sum(t * w[None, :], 1))
            eta += h * tl.load(gamma + (run * orders + k) * RANK + j)
        total += eta[:, None] * t
    tl.store(out + place, total, mask=mask)


@triton.jit
def _filter_gradient_kernel(
    grad, terms, weight, gamma, d_terms, d_weight, d_gamma,
    n, runs, channels, orders, order_stride, node_stride,
    RANK: tl.constexpr, NODES: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Compute the gradients; :mod:`nfgnn.nn.gates.term_filter` derives them.

    Sums over nodes are stored as one partial sum per block of nodes, ``[blocks, runs, …]``, so that
    adding them up has a fixed order.
    """
    block = tl.program_id(0)
    run = tl.program_id(1)
    node = block * NODES + tl.arange(0, NODES)
    c = tl.arange(0, CHANNELS)
    inside = c < channels
    mask = (node < n)[:, None] & inside[None, :]
    place = (node.to(tl.int64) * runs + run)[:, None] * channels + c[None, :]
    term_place = node.to(tl.int64)[:, None] * node_stride + run * channels + c[None, :]
    g = tl.load(grad + place, mask=mask, other=0.0)
    part = tl.cast(block, tl.int64) * runs + run
    for k in range(orders):
        shift = tl.cast(k, tl.int64) * n * runs * channels
        t = tl.load(terms + tl.cast(k, tl.int64) * order_stride + term_place, mask=mask, other=0.0)
        delta = tl.sum(t * g, 1)
        eta = tl.zeros((NODES,), tl.float32)
        d_t = tl.zeros((NODES, CHANNELS), tl.float32)
        for j in tl.static_range(RANK):
            w = tl.load(weight + (run * channels + c) * RANK + j, mask=inside, other=0.0)
            gamma_kj = tl.load(gamma + (run * orders + k) * RANK + j)
            h = tl.sigmoid(tl.sum(t * w[None, :], 1))
            eta += h * gamma_kj
            s = delta * gamma_kj * h * (1 - h)
            d_t += s[:, None] * w[None, :]
            tl.store(d_gamma + (part * orders + k) * RANK + j, tl.sum(delta * h, 0))
            # The sum over orders is kept in memory: W has as many columns as the gate has filters.
            sum_w = d_weight + (part * channels + c) * RANK + j
            before = tl.load(sum_w, mask=inside & (k > 0), other=0.0)
            tl.store(sum_w, before + tl.sum(s[:, None] * t, 0), mask=inside)
        tl.store(d_terms + shift + place, d_t + eta[:, None] * g, mask=mask)


def forward(terms: Tensor, weight: Tensor, gamma: Tensor) -> Tensor:
    """Return Z ``[n, runs, channels]``."""
    terms = _channels_last(terms)
    weight = weight.contiguous()
    gamma = gamma.contiguous()
    orders, n, runs, channels = terms.shape
    out = terms.new_empty(n, runs, channels)
    nodes, width = _blocks(channels, n * runs)
    _filter_kernel[(triton.cdiv(n, nodes), runs)](
        terms, weight, gamma, out, n, runs, channels, orders, *terms.stride()[:2],
        weight.shape[2], nodes, width, num_warps=4 if nodes > 16 else 1,
    )  # fmt: skip
    return out


def backward(
    grad: Tensor, terms: Tensor, weight: Tensor, gamma: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients for the terms, W and Γ."""
    grad = grad.contiguous()
    terms = _channels_last(terms)
    weight = weight.contiguous()
    gamma = gamma.contiguous()
    orders, n, runs, channels = terms.shape
    rank = weight.shape[2]
    nodes, width = _blocks(channels, n * runs)
    blocks = triton.cdiv(n, nodes)
    d_terms = terms.new_empty(terms.shape)
    d_weight = terms.new_empty(blocks, runs, channels, rank)
    d_gamma = terms.new_empty(blocks, runs, orders, rank)
    _filter_gradient_kernel[(blocks, runs)](
        grad, terms, weight, gamma, d_terms, d_weight, d_gamma,
        n, runs, channels, orders, *terms.stride()[:2],
        rank, nodes, width, num_warps=4 if nodes > 16 else 1,
    )  # fmt: skip
    return d_terms, d_weight.sum(0), d_gamma.sum(0)


def _channels_last(terms: Tensor) -> Tensor:
    """Return the terms with all numbers of a node adjacent in memory."""
    adjacent = terms.stride()[2:] == (terms.shape[3], 1)
    return terms if adjacent else terms.contiguous()


def _blocks(channels: int, nodes: int) -> tuple[int, int]:
    """Return nodes per program and the padded width.

    Programs of a small graph take few nodes each, so that all multiprocessors have work.
    """
    width = max(2, triton.next_power_of_2(channels))
    if nodes < 50_000:
        return 16, width
    return max(16, min(256, 1024 // width)), width
