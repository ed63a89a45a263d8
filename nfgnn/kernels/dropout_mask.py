"""Which values dropout keeps, from a seed and the position of a value.

The backward pass draws the same values again, so no mask is stored.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def keep_mask(seed, row, first, columns, rate, COLUMNS: tl.constexpr):
    """Return which values of these rows dropout keeps, from column ``first`` on.

    A random block has four 32-bit words, i.e. eight draws of 16 bits.
    """
    group = first // 8 + tl.arange(0, COLUMNS // 8)
    counter = row[:, None] * ((columns + 7) // 8) + group[None, :]
    a, b, c, d = tl.randint4x(seed, counter, n_rounds=7)
    words = tl.join(tl.join(a, b), tl.join(c, d)).to(tl.uint32, bitcast=True)
    draws = tl.reshape(tl.join(words & 0xFFFF, words >> 16), (row.shape[0], COLUMNS))
    return draws.to(tl.int32) >= (rate * 65536 + 0.5).to(tl.int32)


@triton.jit
def _kept_kernel(out, seed, n, columns, rates, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLUMNS)
    kept = keep_mask(seed, row, 0, columns, tl.load(rates), COLUMNS)
    mask = (row < n)[:, None] & (c < columns)[None, :]
    tl.store(out + row[:, None] * columns + c[None, :], kept, mask=mask)


def kept_values(seed: int, n: int, columns: int, rate: float, device: str = "cpu") -> Tensor:
    """Return which values of a matrix ``[n, columns]`` the kernels keep under a seed, for tests."""
    out = torch.empty(n, columns, dtype=torch.bool, device=device)
    rates = torch.full((1,), rate, device=device)
    padded = max(16, triton.next_power_of_2(columns))
    _kept_kernel[(triton.cdiv(n, 64),)](out, seed, n, columns, rates, 64, padded)
    return out
