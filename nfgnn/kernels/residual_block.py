"""Row-wise operations of a residual block; twin of :mod:`nfgnn.nn.residual_block`.

Tensors of nodes are ``[n, runs, width]``, so that the runs of a sparse product are columns of one
matrix. Parameters are ``[runs, width]``. A program works on rows of one run. Sums over nodes are
taken in parts, which are added up in a fixed order.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from nfgnn.kernels.dropout_mask import keep_mask

_VALUES = 2048  # per block of rows
_PROGRAMS = 528  # four on every multiprocessor of an H200


@triton.jit
def _block(number, run, n, width, runs, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Return rows, columns, positions and mask of a block of rows of a run."""
    row = number * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    place = (row.to(tl.int64) * runs + run)[:, None] * width + column[None, :]
    mask = (row < n)[:, None] & (column < width)[None, :]
    return row, column, place, mask


@triton.jit
def _parameter(values, run, stride, column, width):
    """Return a parameter of a run as a row."""
    loaded = tl.load(values + run * stride + column, mask=column < width, other=0.0)
    return loaded.to(tl.float32)[None, :]


@triton.jit
def _dropped(value, rates, seeds, salt, run, row, width, WIDTH: tl.constexpr):
    """Apply dropout, or in the backward pass its derivative."""
    rate = tl.load(rates + run)
    kept = keep_mask(tl.load(seeds + run) + salt, row, 0, width, rate, WIDTH)
    return tl.where(kept, value / (1 - rate), 0.0)


@triton.jit
def _activate_kernel(
    u, bias, rates, seeds, salt, out, n, width, runs, bias_run,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Compute out = drop(gelu(u + bias))."""
    run = tl.program_id(1)
    row, column, place, mask = _block(tl.program_id(0), run, n, width, runs, ROWS, WIDTH)
    value = tl.load(u + place, mask=mask, other=0.0).to(tl.float32)
    value += _parameter(bias, run, bias_run, column, width)
    value = 0.5 * value * (1 + tl.erf(value * 0.7071067811865476))
    if rates is not None:
        value = _dropped(value, rates, seeds, salt, run, row, width, WIDTH)
    tl.store(out + place, value, mask=mask)


@triton.jit
def _activate_gradient_kernel(
    grad, u, bias, rates, seeds, salt, d_u, sums, n, width, runs, bias_run,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Compute the gradient for u, and its sums over the rows of this program."""
    program = tl.program_id(0)
    run = tl.program_id(1)
    total = tl.zeros((ROWS, WIDTH), tl.float32)
    column = tl.arange(0, WIDTH)
    own_bias = _parameter(bias, run, bias_run, column, width)
    for number in tl.range(program, tl.cdiv(n, ROWS), tl.num_programs(0), num_stages=1):
        row, _, place, mask = _block(number, run, n, width, runs, ROWS, WIDTH)
        value = tl.load(u + place, mask=mask, other=0.0).to(tl.float32) + own_bias
        d = tl.load(grad + place, mask=mask, other=0.0).to(tl.float32)
        if rates is not None:
            d = _dropped(d, rates, seeds, salt, run, row, width, WIDTH)
        slope = 0.5 * (1 + tl.erf(value * 0.7071067811865476))
        slope += value * tl.exp(-0.5 * value * value) * 0.3989422804014327
        d *= slope
        tl.store(d_u + place, d, mask=mask)
        total += d
    place = (program * runs + run) * width + column
    tl.store(sums + place, tl.sum(total, 0), mask=column < width)


@triton.jit
def _residual_kernel(
    h, o, bias, rates, seeds, salt, gamma, beta, out, y, n, width, runs,
    bias_run, gamma_run, beta_run, epsilon, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Compute out = h + drop(o + bias) and y = LayerNorm(out). Without o, out is h."""
    run = tl.program_id(1)
    row, column, place, mask = _block(tl.program_id(0), run, n, width, runs, ROWS, WIDTH)
    value = tl.load(h + place, mask=mask, other=0.0)
    if o is not None:
        added = tl.load(o + place, mask=mask, other=0.0).to(tl.float32)
        added += _parameter(bias, run, bias_run, column, width)
        if rates is not None:
            added = _dropped(added, rates, seeds, salt, run, row, width, WIDTH)
        value += tl.where(mask, added, 0.0)
        tl.store(out + place, value, mask=mask)
    mean = tl.sum(value, 1) / width
    centred = tl.where(mask, value - mean[:, None], 0.0)
    deviation = tl.sqrt(tl.sum(centred * centred, 1) / width + epsilon)
    scaled = centred / deviation[:, None]
    scaled *= _parameter(gamma, run, gamma_run, column, width)
    scaled += _parameter(beta, run, beta_run, column, width)
    tl.store(y + place, scaled, mask=mask)


@triton.jit
def _residual_gradient_kernel(
    d_out, d_y, out, rates, seeds, salt, gamma, d_h, d_o, sums, n, width, runs,
    gamma_run, epsilon, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Compute the gradients for h and o, and the sums for γ, β and bias over the rows."""
    program = tl.program_id(0)
    run = tl.program_id(1)
    column = tl.arange(0, WIDTH)
    own_gamma = _parameter(gamma, run, gamma_run, column, width)
    sum_gamma = tl.zeros((ROWS, WIDTH), tl.float32)
    sum_beta = tl.zeros((ROWS, WIDTH), tl.float32)
    sum_bias = tl.zeros((ROWS, WIDTH), tl.float32)
    for number in tl.range(program, tl.cdiv(n, ROWS), tl.num_programs(0), num_stages=1):
        row, _, place, mask = _block(number, run, n, width, runs, ROWS, WIDTH)
        value = tl.load(out + place, mask=mask, other=0.0)
        mean = tl.sum(value, 1) / width
        centred = tl.where(mask, value - mean[:, None], 0.0)
        deviation = tl.sqrt(tl.sum(centred * centred, 1) / width + epsilon)[:, None]
        scaled = centred / deviation
        d = tl.load(d_y + place, mask=mask, other=0.0).to(tl.float32)
        sum_gamma += d * scaled
        sum_beta += d
        d *= own_gamma
        along = tl.sum(d * scaled, 1)[:, None] / width
        total = (d - tl.sum(d, 1)[:, None] / width - scaled * along) / deviation
        if d_out is not None:
            total += tl.load(d_out + place, mask=mask, other=0.0)
        tl.store(d_h + place, total, mask=mask)
        if d_o is not None:
            if rates is not None:
                total = _dropped(total, rates, seeds, salt, run, row, width, WIDTH)
            total = tl.where(mask, total, 0.0)
            tl.store(d_o + place, total, mask=mask)
            sum_bias += total
    # Sums are [programs, 3, runs, width].
    place = (program * 3 * runs + run) * width + column
    inside = column < width
    tl.store(sums + place, tl.sum(sum_gamma, 0), mask=inside)
    tl.store(sums + place + runs * width, tl.sum(sum_beta, 0), mask=inside)
    tl.store(sums + place + 2 * runs * width, tl.sum(sum_bias, 0), mask=inside)


@triton.jit
def _weight_gradient_kernel(
    x, grad, parts, n, inputs, outputs, x_row, x_run, runs, number, terms,
    ROWS: tl.constexpr, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute Xᵀ G of one run over some of the rows, for a tile of inputs and outputs."""
    program = tl.program_id(0)
    run = tl.program_id(1)
    tiles = tl.cdiv(outputs, OUTPUTS)
    i = tl.program_id(2) // tiles * INPUTS + tl.arange(0, INPUTS)
    o = tl.program_id(2) % tiles * OUTPUTS + tl.arange(0, OUTPUTS)
    total = tl.zeros((INPUTS, OUTPUTS), tl.float32)
    for block in range(program, tl.cdiv(n, ROWS), tl.num_programs(0)):
        row = (block * ROWS + tl.arange(0, ROWS)).to(tl.int64)
        inside = row < n
        values = tl.load(
            x + row[None, :] * x_row + run * x_run + i[:, None],
            mask=inside[None, :] & (i < inputs)[:, None],
            other=0.0,
        )
        d = tl.load(
            grad + (row * runs + run)[:, None] * outputs + o[None, :],
            mask=inside[:, None] & (o < outputs)[None, :],
            other=0.0,
        )
        total = tl.dot(values, d, total, input_precision=PRECISION)
    # Parts are [programs, runs, terms, inputs, outputs].
    part = ((program * runs + run) * terms + number).to(tl.int64) * inputs * outputs
    mask = (i < inputs)[:, None] & (o < outputs)[None, :]
    tl.store(parts + part + i[:, None] * outputs + o[None, :], total, mask=mask)


def weight_gradient(grad: Tensor, terms: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    """Return the gradient T_kᵀ G of the weights of every order, ``[runs, K + 1, in, out]``.

    A matrix product with so few outputs would occupy a single multiprocessor per run, so many
    programs share the rows.
    """
    # The kernel reads the inputs of a node one after the other.
    terms = [term if term.stride(-1) == 1 else term.contiguous() for term in terms]
    n, runs, outputs = grad.shape
    inputs = terms[0].shape[-1]
    block_inputs = min(128, _padded(inputs))
    block_outputs = min(128, _padded(outputs))
    tiles = triton.cdiv(inputs, block_inputs) * triton.cdiv(outputs, block_outputs)
    rows = 64 if grad.dtype == torch.bfloat16 else 32
    programs = max(1, min(int(triton.cdiv(n, rows)), 132 // (runs * tiles)))
    parts = torch.empty(
        (programs, runs, len(terms), inputs, outputs), dtype=torch.float32, device=grad.device
    )
    for number, term in enumerate(terms):
        _weight_gradient_kernel[(programs, runs, tiles)](
            term, grad, parts, n, inputs, outputs, term.stride(0), term.stride(1), runs,
            number, len(terms), rows, block_inputs, block_outputs,
            "tf32" if grad.dtype == torch.bfloat16 else "tf32x3",
            num_warps=8 if block_inputs * block_outputs >= 8192 else 4,
        )  # fmt: skip
    return parts.sum(0).to(dtype)


def activate(
    u: Tensor, bias: Tensor, rates: Tensor | None, seeds: Tensor | None, salt: int
) -> Tensor:
    """Return drop(gelu(u + bias)); without ``rates`` nothing is dropped."""
    n, runs, width = u.shape
    out = torch.empty_like(u)
    rows, padded, warps = _shape(width)
    _activate_kernel[(triton.cdiv(n, rows), runs)](
        u, bias, rates, seeds, salt, out, n, width, runs, bias.stride(0),
        rows, padded, num_warps=warps,
    )  # fmt: skip
    return out


def activate_gradient(
    grad: Tensor,
    u: Tensor,
    bias: Tensor,
    rates: Tensor | None,
    seeds: Tensor | None,
    salt: int,
) -> tuple[Tensor, Tensor]:
    """Return the gradients for u and bias."""
    n, runs, width = u.shape
    d_u = torch.empty_like(u)
    rows, padded, warps = _shape(width)
    programs = _programs(n, rows, runs)
    sums = u.new_empty(programs, runs, width, dtype=torch.float32)
    _activate_gradient_kernel[(programs, runs)](
        grad, u, bias, rates, seeds, salt, d_u, sums, n, width, runs, bias.stride(0),
        rows, padded, num_warps=warps,
    )  # fmt: skip
    return d_u, sums.sum(0).to(bias.dtype)


def residual_norm(
    h: Tensor,
    o: Tensor | None,
    bias: Tensor | None,
    rates: Tensor | None,
    seeds: Tensor | None,
    salt: int,
    gamma: Tensor,
    beta: Tensor,
    epsilon: float,
) -> tuple[Tensor, Tensor]:
    """Return h + drop(o + bias) in float32 and its LayerNorm in the precision of γ."""
    n, runs, width = h.shape
    out = h if o is None else torch.empty_like(h)
    y = torch.empty(h.shape, dtype=gamma.dtype, device=h.device)
    rows, padded, warps = _shape(width)
    bias_run = 0 if bias is None else bias.stride(0)
    _residual_kernel[(triton.cdiv(n, rows), runs)](
        h, o, bias, rates, seeds, salt, gamma, beta, out, y, n, width, runs,
        bias_run, gamma.stride(0), beta.stride(0), epsilon, rows, padded, num_warps=warps,
    )  # fmt: skip
    return out, y


def residual_norm_gradient(
    d_out: Tensor | None,
    d_y: Tensor,
    out: Tensor,
    rates: Tensor | None,
    seeds: Tensor | None,
    salt: int,
    gamma: Tensor,
    has_branch: bool,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients for h, for o, and for γ, β and bias as ``[3, runs, width]``."""
    n, runs, width = out.shape
    d_h = torch.empty_like(out)
    d_o = torch.empty_like(d_y) if has_branch else None
    rows, padded, warps = _shape(width)
    programs = _programs(n, rows, runs)
    sums = out.new_empty(programs, 3, runs, width)
    _residual_gradient_kernel[(programs, runs)](
        d_out, d_y, out, rates, seeds, salt, gamma, d_h, d_o, sums, n, width, runs,
        gamma.stride(0), epsilon, rows, padded, num_warps=warps,
    )  # fmt: skip
    return d_h, d_h if d_o is None else d_o, sums.sum(0).to(gamma.dtype)


def _shape(width: int) -> tuple[int, int, int]:
    """Return rows of a block, padded width and warps."""
    padded = _padded(width)
    rows = max(1, _VALUES // padded)
    return rows, padded, 4


def _padded(size: int) -> int:
    return max(16, int(triton.next_power_of_2(size)))


def _programs(n: int, rows: int, runs: int) -> int:
    return max(1, min(int(triton.cdiv(n, rows)), _PROGRAMS // runs))
