"""Two linear layers with their dropouts as two Triton kernels: features are read once forward and once backward.

Which values are dropped follows from a seed and the place of a value, so the backward pass draws the same again and no
mask is kept. Products of matrices run on tensor cores, every number as two of TF32, which gives six digits.
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from nfgnn.tensor_cache import TensorCache

MAX_FEATURES, MAX_HIDDEN, MAX_CLASSES = 128, 128, 16
_ALIGNED = TensorCache()


@triton.jit
def _halves(x):  # type: ignore[no-untyped-def]
    """x as the sum of what TF32 holds of it and the rest, which TF32 holds nearly all of."""
    high = (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)
    return high, x - high


@triton.jit
def _dot(a_high, a_low, b_high, b_low, total):  # type: ignore[no-untyped-def]
    """total + a b, without the product of both rests."""
    total = tl.dot(a_low, b_high, total, input_precision="tf32")
    total = tl.dot(a_high, b_low, total, input_precision="tf32")
    return tl.dot(a_high, b_high, total, input_precision="tf32")


@triton.jit
def _kept(seed, row, first, columns, rate, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Which of the values in these rows, from column ``first`` on, stay: eight 16-bit draws from every random block."""
    group = first // 8 + tl.arange(0, COLUMNS // 8)
    a, b, c, d = tl.randint4x(
        seed, row[:, None] * ((columns + 7) // 8) + group[None, :], n_rounds=7
    )
    words = tl.join(tl.join(a, b), tl.join(c, d)).to(tl.uint32, bitcast=True)
    draws = tl.reshape(tl.join(words & 0xFFFF, words >> 16), (row.shape[0], COLUMNS))
    return draws.to(tl.int32) >= (rate * 65536 + 0.5).to(tl.int32)


@triton.jit
def _forward_kernel(  # type: ignore[no-untyped-def]
    x, w1, b1, w2, b2, rates, seeds, out, held, hidden, n, features, stride, width, classes, runs,
    w1_run, w1_out, w1_in, b1_run, w2_run, w2_out, w2_in, b2_run,
    ROWS: tl.constexpr, FEATURES: tl.constexpr, BLOCKS: tl.constexpr, HIDDEN: tl.constexpr,
):  # fmt: skip
    """A block of rows of one run, in training (``out``, ``hidden``) and in evaluation (``held``)."""
    run, start = tl.program_id(1).to(tl.int64), tl.program_id(0).to(tl.int64) * ROWS
    r = tl.arange(0, ROWS)
    row, there = tl.program_id(0) * ROWS + r, r < n - start
    x += start * stride
    h = tl.arange(0, HIDDEN)
    rate = tl.load(rates + run)
    factor = 1 / (1 - rate)
    total = tl.zeros((ROWS, HIDDEN), tl.float32)
    plain = tl.zeros((ROWS, HIDDEN), tl.float32)
    seed = tl.load(seeds + 2 * run)
    for block in tl.static_range(BLOCKS):
        first = block * FEATURES
        f = first + tl.arange(0, FEATURES)
        part = tl.load(x + r[:, None] * stride + f[None, :], mask=there[:, None], other=0.0)
        w = tl.load(
            w1 + run * w1_run + h[None, :] * w1_out + f[:, None] * w1_in,
            mask=(h < width)[None, :] & (f < features)[:, None], other=0.0,
        )  # fmt: skip
        high, low = _halves(part)
        w_high, w_low = _halves(w)
        plain = _dot(high, low, w_high, w_low, plain)
        kept = _kept(seed, row, first, features, rate, FEATURES)
        total = _dot(tl.where(kept, high, 0.0), tl.where(kept, low, 0.0), w_high, w_low, total)
    bias = tl.load(b1 + run * b1_run + h, mask=h < width, other=0.0)[None, :]
    plain = tl.maximum(plain + bias, 0.0)
    kept = _kept(tl.load(seeds + 2 * run + 1), row, 0, width, rate, HIDDEN)
    active = tl.where(kept, tl.maximum(total * factor + bias, 0.0) * factor, 0.0)
    hidden += (run * n + start) * width
    tl.store(
        hidden + r[:, None] * width + h[None, :], active, mask=there[:, None] & (h < width)[None, :]
    )
    place = (start * runs + run) * classes + r * runs * classes
    for c in range(classes):
        w_c = tl.load(w2 + run * w2_run + c * w2_out + h * w2_in, mask=h < width, other=0.0)[
            None, :
        ]
        bias_2 = tl.load(b2 + run * b2_run + c)
        tl.store(out + place + c, tl.sum(active * w_c, 1) + bias_2, mask=there)
        tl.store(held + place + c, tl.sum(plain * w_c, 1) + bias_2, mask=there)


@triton.jit
def _add_outer(  # type: ignore[no-untyped-def]
    x,
    r,
    row,
    there,
    first,
    d_high,
    d_low,
    seed,
    rate,
    factor,
    features,
    stride,
    total,
    COLUMNS: tl.constexpr,
):
    """total + drop(X)ᵀ D over a block of rows, for the features from ``first`` on; after the last one comes a 1."""
    f = first + tl.arange(0, COLUMNS)
    part = tl.load(
        x + r[:, None] * stride + f[None, :], mask=there[:, None] & (f < stride)[None, :], other=0.0
    )
    part = tl.where(_kept(seed, row, first, features, rate, COLUMNS), part * factor, 0.0)
    high, low = _halves(tl.where((f == features)[None, :], 1.0, part))
    return total + _dot(tl.trans(high), tl.trans(low), d_high, d_low, tl.zeros_like(total))


@triton.jit
def _backward_kernel(  # type: ignore[no-untyped-def]
    grad, x, hidden, w2, rates, seeds, d_w1, d_w2, n, features, stride, width, classes, runs,
    w2_run, w2_out, w2_in,
    ROWS: tl.constexpr, ONE: tl.constexpr, TWO: tl.constexpr, HIDDEN: tl.constexpr, CLASSES: tl.constexpr,
):  # fmt: skip
    """Every program takes each P-th block of rows and leaves its sums as a part, so that adding them up has a fixed
    order. The bias b₁ counts as the weight of one more feature, which is 1 everywhere; all of them are ONE + TWO.
    """
    program, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    r, h, c = tl.arange(0, ROWS), tl.arange(0, HIDDEN), tl.arange(0, CLASSES)
    rate, seed = tl.load(rates + run), tl.load(seeds + 2 * run)
    factor = 1 / (1 - rate)
    sum_one = tl.zeros((ONE, HIDDEN), tl.float32)
    sum_two = tl.zeros((TWO, HIDDEN), tl.float32)
    sum_w2 = tl.zeros((CLASSES, HIDDEN), tl.float32)
    for block in tl.range(program, tl.cdiv(n, ROWS), tl.num_programs(0), num_stages=1):
        start = tl.cast(block, tl.int64) * ROWS
        row, there = block * ROWS + r, r < n - start
        active = tl.load(
            hidden + (run * n + start) * width + r[:, None] * width + h[None, :],
            mask=there[:, None] & (h < width)[None, :], other=0.0,
        )  # fmt: skip
        place = grad + (start * runs + run) * classes + r * runs * classes
        d = tl.zeros((ROWS, HIDDEN), tl.float32)
        for k in range(classes):
            w = tl.load(w2 + run * w2_run + k * w2_out + h * w2_in, mask=h < width, other=0.0)
            d += tl.load(place + k, mask=there, other=0.0)[:, None] * w[None, :]
        d_high, d_low = _halves(tl.where(active > 0, d * factor, 0.0))
        own = x + start * stride
        sum_one = _add_outer(
            own, r, row, there, 0, d_high, d_low, seed, rate, factor, features, stride, sum_one, ONE
        )
        sum_two = _add_outer(
            own,
            r,
            row,
            there,
            ONE,
            d_high,
            d_low,
            seed,
            rate,
            factor,
            features,
            stride,
            sum_two,
            TWO,
        )
        g = tl.load(
            place[:, None] + c[None, :], mask=there[:, None] & (c < classes)[None, :], other=0.0
        )
        g_high, g_low = _halves(g)
        high, low = _halves(active)
        sum_w2 += _dot(tl.trans(g_high), tl.trans(g_low), high, low, tl.zeros_like(sum_w2))
    part_of = tl.cast(program, tl.int64) * runs + run
    inside = (h < width)[None, :]
    d_w1 += part_of * (features + 1) * width
    f = tl.arange(0, ONE)
    tl.store(
        d_w1 + f[:, None] * width + h[None, :], sum_one, mask=(f <= features)[:, None] & inside
    )
    f = ONE + tl.arange(0, TWO)
    tl.store(
        d_w1 + f[:, None] * width + h[None, :], sum_two, mask=(f <= features)[:, None] & inside
    )
    d_w2 += part_of * classes * width
    tl.store(d_w2 + c[:, None] * width + h[None, :], sum_w2, mask=(c < classes)[:, None] & inside)


@triton.jit
def _kept_kernel(out, seed, n, columns, rates, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    row, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    kept = _kept(seed, row, 0, columns, tl.load(rates), COLUMNS)
    tl.store(
        out + row[:, None] * columns + c[None, :],
        kept,
        mask=(row < n)[:, None] & (c < columns)[None, :],
    )


def forward(
    x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, rates: Tensor, seeds: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores in training and in evaluation ``[n, runs, classes]``, and the hidden layer after its dropout."""
    (n, features), (runs, classes, width), x = x.shape, w2.shape, _aligned(x)
    out, held = x.new_empty(2, n, runs, classes)
    hidden = x.new_empty(runs, n, width)
    _forward_kernel[(triton.cdiv(n, 64), runs)](
        x, w1, b1, w2, b2, rates.contiguous(), seeds.contiguous(), out, held, hidden, n, features, x.shape[1], width,
        classes, runs, *w1.stride(), b1.stride(0), *w2.stride(), b2.stride(0),
        64, 16, x.shape[1] // 16, _padded(width), num_warps=4 if width <= 64 else 8, maxnreg=128,
    )  # fmt: skip
    return out, held, hidden


def backward(
    grad: Tensor, x: Tensor, hidden: Tensor, w2: Tensor, rates: Tensor, seeds: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients for W₁, b₁, W₂ and b₂."""
    (n, features), (runs, classes, width), x = x.shape, w2.shape, _aligned(x)
    one, two = _two_powers(features + 1)
    sums = (one + two + _padded(classes)) * _padded(
        width
    )  # in registers: at most 128 of every thread
    parts = max(1, min(triton.cdiv(n, 16), 528 // runs))
    d_w1, d_w2 = (
        x.new_empty(parts, runs, features + 1, width),
        x.new_empty(parts, runs, classes, width),
    )
    _backward_kernel[(parts, runs)](
        grad.contiguous(), x, hidden.contiguous(), w2, rates.contiguous(), seeds.contiguous(), d_w1, d_w2,
        n, features, x.shape[1], width, classes, runs, *w2.stride(),
        16, one, two, _padded(width), _padded(classes),
        num_warps=max(2, triton.next_power_of_2(triton.cdiv(sums, 4096))),
    )  # fmt: skip
    d_w1 = d_w1.sum(0)
    return d_w1[:, :-1].mT, d_w1[:, -1], d_w2.sum(0), grad.sum(0)


def kept(seed: int, n: int, columns: int, rate: float, device: str = "cpu") -> Tensor:
    """Which values of a matrix stay under a seed: what the kernels draw, for checks."""
    out = torch.empty(n, columns, dtype=torch.bool, device=device)
    rates = torch.full((1,), rate, device=device)
    _kept_kernel[(triton.cdiv(n, 64),)](out, seed, n, columns, rates, 64, _padded(columns))
    return out


def _aligned(x: Tensor) -> Tensor:
    """The features with rows that begin at multiples of 64 bytes, filled up with zeros; made once."""
    missing = -x.shape[1] % 16
    return _ALIGNED.lookup((x,), None, lambda: F.pad(x, (0, missing))) if missing else x


def _two_powers(columns: int) -> tuple[int, int]:
    """Two powers of two whose sum is little more than the number of columns."""
    one = min(128, max(16, triton.next_power_of_2(columns // 2 + 1)))
    return one, min(128, max(16, triton.next_power_of_2(columns - one)))


def _padded(size: int) -> int:
    return max(16, int(triton.next_power_of_2(size)))
