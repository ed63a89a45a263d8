"""An MLP of two layers with dropout, in training and in evaluation; twin of :class:`nfgnn.nn.MLP`.

Two kernels read the features once in the forward pass and once in the backward pass:
:mod:`nfgnn.nn.fused_mlp` has the formulas. Which values are dropped follows from a seed and the
position of a value, so the backward pass draws the same values again and no mask is stored. Matrix
products run on tensor cores. Every float32 is split into two TF32 numbers, which gives six digits.
"""

import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from nfgnn.kernels.dropout_mask import keep_mask
from nfgnn.tensor_cache import TensorCache

MAX_FEATURES = 128
MAX_HIDDEN = 128
MAX_CLASSES = 16
_ALIGNED = TensorCache()


@triton.jit
def _split(x):
    """Return x as the sum of its leading bits, which TF32 holds exactly, and the rest."""
    high = (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)
    return high, x - high


@triton.jit
def _dot(a_high, a_low, b_high, b_low, total):
    """Return total + a b, without the product of the two low parts."""
    total = tl.dot(a_low, b_high, total, input_precision="tf32")
    total = tl.dot(a_high, b_low, total, input_precision="tf32")
    return tl.dot(a_high, b_high, total, input_precision="tf32")


@triton.jit
def _mlp_kernel(
    x, w1, b1, w2, b2, rates, seeds, out, evaluated, hidden,
    n, features, stride, width, classes, runs,
    w1_run, w1_out, w1_in, b1_run, w2_run, w2_out, w2_in, b2_run,
    ROWS: tl.constexpr, FEATURES: tl.constexpr, BLOCKS: tl.constexpr, HIDDEN: tl.constexpr,
):  # fmt: skip
    """Compute a block of rows of one run, in training (``out``, ``hidden``) and in evaluation.

    The hidden layer stays in registers: BLOCKS blocks of FEATURES columns are added up in it.
    """
    run = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0).to(tl.int64) * ROWS
    r = tl.arange(0, ROWS)
    row = tl.program_id(0) * ROWS + r
    row_mask = r < n - start
    x += start * stride
    h = tl.arange(0, HIDDEN)
    rate = tl.load(rates + run)
    factor = 1 / (1 - rate)
    dropped = tl.zeros((ROWS, HIDDEN), tl.float32)
    plain = tl.zeros((ROWS, HIDDEN), tl.float32)
    seed = tl.load(seeds + 2 * run)
    for block in tl.static_range(BLOCKS):
        first = block * FEATURES
        f = first + tl.arange(0, FEATURES)
        part = tl.load(x + r[:, None] * stride + f[None, :], mask=row_mask[:, None], other=0.0)
        w = tl.load(
            w1 + run * w1_run + h[None, :] * w1_out + f[:, None] * w1_in,
            mask=(h < width)[None, :] & (f < features)[:, None],
            other=0.0,
        )
        high, low = _split(part)
        w_high, w_low = _split(w)
        plain = _dot(high, low, w_high, w_low, plain)
        kept = keep_mask(seed, row, first, features, rate, FEATURES)
        high = tl.where(kept, high, 0.0)
        low = tl.where(kept, low, 0.0)
        dropped = _dot(high, low, w_high, w_low, dropped)

    # Bias, ReLU and the second dropout.
    bias = tl.load(b1 + run * b1_run + h, mask=h < width, other=0.0)[None, :]
    plain = tl.maximum(plain + bias, 0.0)
    kept = keep_mask(tl.load(seeds + 2 * run + 1), row, 0, width, rate, HIDDEN)
    active = tl.where(kept, tl.maximum(dropped * factor + bias, 0.0) * factor, 0.0)
    hidden += (run * n + start) * width
    mask = row_mask[:, None] & (h < width)[None, :]
    tl.store(hidden + r[:, None] * width + h[None, :], active, mask=mask)

    # The second layer has few outputs: one class at a time.
    place = (start * runs + run) * classes + r * runs * classes
    for c in range(classes):
        w_c = tl.load(w2 + run * w2_run + c * w2_out + h * w2_in, mask=h < width, other=0.0)
        w_c = w_c[None, :]
        bias_2 = tl.load(b2 + run * b2_run + c)
        tl.store(out + place + c, tl.sum(active * w_c, 1) + bias_2, mask=row_mask)
        tl.store(evaluated + place + c, tl.sum(plain * w_c, 1) + bias_2, mask=row_mask)


@triton.jit
def _add_outer(
    x, r, row, row_mask, first, d_high, d_low, seed, rate, factor, features, stride, total,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """Return total + drop(X)ᵀ D over a block of rows, for the features from ``first`` on.

    After the last feature comes a 1, whose weight is the bias.
    """
    f = first + tl.arange(0, COLUMNS)
    mask = row_mask[:, None] & (f < stride)[None, :]
    part = tl.load(x + r[:, None] * stride + f[None, :], mask=mask, other=0.0)
    part = tl.where(keep_mask(seed, row, first, features, rate, COLUMNS), part * factor, 0.0)
    high, low = _split(tl.where((f == features)[None, :], 1.0, part))
    return total + _dot(tl.trans(high), tl.trans(low), d_high, d_low, tl.zeros_like(total))


@triton.jit
def _mlp_gradient_kernel(
    grad, x, hidden, w2, rates, seeds, d_w1, d_w2,
    n, features, stride, width, classes, runs, w2_run, w2_out, w2_in,
    ROWS: tl.constexpr, ONE: tl.constexpr, TWO: tl.constexpr,
    HIDDEN: tl.constexpr, CLASSES: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of one run as partial sums.

    Of P programs, each takes every P-th block of rows and stores its sums, so that adding up the P
    parts has a fixed order. The bias b₁ is the weight of one more feature, which is 1 everywhere.
    The features are processed in two parts of ONE and TWO columns, because block sizes are powers
    of two.
    """
    program = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    r = tl.arange(0, ROWS)
    h = tl.arange(0, HIDDEN)
    c = tl.arange(0, CLASSES)
    rate = tl.load(rates + run)
    seed = tl.load(seeds + 2 * run)
    factor = 1 / (1 - rate)
    sum_one = tl.zeros((ONE, HIDDEN), tl.float32)
    sum_two = tl.zeros((TWO, HIDDEN), tl.float32)
    sum_w2 = tl.zeros((CLASSES, HIDDEN), tl.float32)
    for block in tl.range(program, tl.cdiv(n, ROWS), tl.num_programs(0), num_stages=1):
        start = tl.cast(block, tl.int64) * ROWS
        row = block * ROWS + r
        row_mask = r < n - start
        active = tl.load(
            hidden + (run * n + start) * width + r[:, None] * width + h[None, :],
            mask=row_mask[:, None] & (h < width)[None, :],
            other=0.0,
        )
        # Gradient of the hidden layer: zero where the ReLU or the dropout is zero.
        place = grad + (start * runs + run) * classes + r * runs * classes
        d = tl.zeros((ROWS, HIDDEN), tl.float32)
        for k in range(classes):
            w = tl.load(w2 + run * w2_run + k * w2_out + h * w2_in, mask=h < width, other=0.0)
            d += tl.load(place + k, mask=row_mask, other=0.0)[:, None] * w[None, :]
        d_high, d_low = _split(tl.where(active > 0, d * factor, 0.0))
        block_x = x + start * stride
        sum_one = _add_outer(
            block_x, r, row, row_mask, 0, d_high, d_low, seed, rate, factor, features, stride,
            sum_one, ONE,
        )  # fmt: skip
        sum_two = _add_outer(
            block_x, r, row, row_mask, ONE, d_high, d_low, seed, rate, factor, features, stride,
            sum_two, TWO,
        )  # fmt: skip
        mask = row_mask[:, None] & (c < classes)[None, :]
        g = tl.load(place[:, None] + c[None, :], mask=mask, other=0.0)
        g_high, g_low = _split(g)
        high, low = _split(active)
        sum_w2 += _dot(tl.trans(g_high), tl.trans(g_low), high, low, tl.zeros_like(sum_w2))

    part = tl.cast(program, tl.int64) * runs + run
    inside = (h < width)[None, :]
    d_w1 += part * (features + 1) * width
    f = tl.arange(0, ONE)
    mask = (f <= features)[:, None] & inside
    tl.store(d_w1 + f[:, None] * width + h[None, :], sum_one, mask=mask)
    f = ONE + tl.arange(0, TWO)
    mask = (f <= features)[:, None] & inside
    tl.store(d_w1 + f[:, None] * width + h[None, :], sum_two, mask=mask)
    d_w2 += part * classes * width
    mask = (c < classes)[:, None] & inside
    tl.store(d_w2 + c[:, None] * width + h[None, :], sum_w2, mask=mask)


def forward(
    x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, rates: Tensor, seeds: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the logits of training and of evaluation, and the hidden layer after its dropout.

    Shapes: x ``[n, features]``, W₁ ``[runs, width, features]``, b₁ ``[runs, width]``, W₂ ``[runs,
    classes, width]``, b₂ ``[runs, classes]``, rates ``[runs]``, seeds ``[runs, 2]``; logits ``[n,
    runs, classes]``, hidden layer ``[runs, n, width]``.
    """
    n, features = x.shape
    runs, classes, width = w2.shape
    x = _aligned(x)
    stride = x.shape[1]
    out, evaluated = x.new_empty(2, n, runs, classes)
    hidden = x.new_empty(runs, n, width)
    _mlp_kernel[(triton.cdiv(n, 64), runs)](
        x, w1, b1, w2, b2, rates.contiguous(), seeds.contiguous(), out, evaluated, hidden,
        n, features, stride, width, classes, runs,
        *w1.stride(), b1.stride(0), *w2.stride(), b2.stride(0),
        64, 16, stride // 16, _padded(width), num_warps=4 if width <= 64 else 8, maxnreg=128,
    )  # fmt: skip
    return out, evaluated, hidden


def backward(
    grad: Tensor, x: Tensor, hidden: Tensor, w2: Tensor, rates: Tensor, seeds: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients for W₁, b₁, W₂ and b₂."""
    n, features = x.shape
    runs, classes, width = w2.shape
    x = _aligned(x)
    one, two = _two_powers(features + 1)
    # All sums stay in registers, at most 128 of every thread.
    sums = (one + two + _padded(classes)) * _padded(width)
    warps = max(2, triton.next_power_of_2(triton.cdiv(sums, 4096)))
    parts = max(1, min(triton.cdiv(n, 16), 528 // runs))
    d_w1 = x.new_empty(parts, runs, features + 1, width)
    d_w2 = x.new_empty(parts, runs, classes, width)
    _mlp_gradient_kernel[(parts, runs)](
        grad.contiguous(), x, hidden.contiguous(), w2, rates.contiguous(), seeds.contiguous(),
        d_w1, d_w2, n, features, x.shape[1], width, classes, runs, *w2.stride(),
        16, one, two, _padded(width), _padded(classes), num_warps=warps,
    )  # fmt: skip
    d_w1 = d_w1.sum(0)
    return d_w1[:, :-1].mT, d_w1[:, -1], d_w2.sum(0), grad.sum(0)


def _aligned(x: Tensor) -> Tensor:
    """Return x with zeros appended, so that rows start at multiples of 64 bytes; cached."""
    missing = -x.shape[1] % 16
    if not missing:
        return x
    return _ALIGNED.lookup((x,), None, lambda: F.pad(x, (0, missing)))


def _two_powers(columns: int) -> tuple[int, int]:
    """Return two powers of two whose sum is at least the number of columns, and little more."""
    one = min(128, max(16, triton.next_power_of_2(columns // 2 + 1)))
    two = min(128, max(16, triton.next_power_of_2(columns - one)))
    return one, two


def _padded(size: int) -> int:
    return max(16, int(triton.next_power_of_2(size)))
