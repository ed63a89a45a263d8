"""Sparse products and recurrences on the GPU; twin of :mod:`nfgnn.spectral.torch_backend`.

One kernel computes all products. A program takes a block of rows and a block of columns and walks
along the entries of its rows. The kernel is launched once per group of rows of similar length:
short rows share a program; a long row has a program of its own, which reads many entries at a
time. Long rows start first, so that hubs do not delay the end. Sums are taken in a fixed order, so
the same input gives the same bits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import triton
import triton.language as tl
from torch import Tensor

from nfgnn.kernels.node_order import LARGE, inverse
from nfgnn.tensor_cache import TensorCache

Table = Sequence[tuple[float, float, float]]
_GROUPS = TensorCache()
_LONG = 256  # entries from which a row has a program of its own
_BLOCK_ENTRIES = 2**26  # entries that are reordered at a time
_WIDE = 1024  # columns from which short rows of a small graph share programs
_WIDE_LENGTH = 32  # entries up to which they do: the longest row of a program delays the others
_WIDE_BLOCKS = (8, 2, 4)  # their rows per program, entries read at a time and warps
_WHOLE = (4, 64)  # widths at which reading rows in pieces of 16 bytes was faster on an H200


class Matrix(Protocol):
    """What products read of :class:`nfgnn.spectral.CSR`."""

    indptr: Tensor
    indices: Tensor
    values: Tensor
    shape: tuple[int, int]


class Operator(Protocol):
    """What recurrences read of :class:`nfgnn.spectral.ScaledLaplacian`."""

    indptr: Tensor
    indices: Tensor
    weight: Tensor | None
    scale: Tensor
    prepared: dict[torch.dtype, Any]


@triton.jit
def _rows_kernel(
    indptr, indices, weight, rows, num_rows,
    x, scale, previous, other, row_scale, outer, out, scaled_out,
    width, run_width, nnz, a: tl.float64, b: tl.float64, c: tl.float64,
    RUN_WEIGHTS: tl.constexpr, HAS_SELF: tl.constexpr, WHOLE: tl.constexpr, WIDE: tl.constexpr,
    ROWS: tl.constexpr, ENTRIES: tl.constexpr, COLUMNS: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Compute a block of rows and columns of a product, and what a recurrence adds to it.

    out[i] = a·scale[i]·Σ_j w_ij x[j] + b·x[i] + c·previous[i] + row_scale[i]·other[i]
    scaled_out[i] = out[i] / row_scale[i]

    Terms whose tensor is None are left out. The columns of a run lie together, ``run_width`` of
    them; with RUN_WEIGHTS every run has weights of its own. The rows of ``other`` and
    ``scaled_out`` may be in another order: row i is their row ``outer[i]``. WHOLE: there are
    exactly COLUMNS columns, and a row of x is read in pieces of 16 bytes. WIDE: positions in x
    need 64 bits. Computes in the precision REAL: that of x, or float32 if x is bfloat16. The
    factors are float64, so that either precision has them as exactly as it can.
    """
    real = REAL
    slot = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row_mask = slot < num_rows
    row = tl.load(rows + slot, mask=row_mask, other=0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    column_mask = column < width
    start = tl.load(indptr + row, mask=row_mask, other=0)
    length = tl.load(indptr + row + 1, mask=row_mask, other=0) - start

    # ENTRIES entries of every row at a time. They are added up only after the loop.
    total = tl.zeros((ROWS, ENTRIES, COLUMNS), real)
    for first in range(0, tl.max(length, axis=0), ENTRIES):
        entry = first + tl.arange(0, ENTRIES)
        entry_mask = entry[None, :] < length[:, None]
        place = start[:, None] + entry[None, :]
        if WHOLE and COLUMNS == 4:
            # A single thread needs this index, so the cache is left to x.
            neighbour = tl.load(
                indices + place, mask=entry_mask, other=0, eviction_policy="evict_first"
            )
        else:
            neighbour = tl.load(indices + place, mask=entry_mask, other=0)
        if WIDE:
            neighbour = neighbour.to(tl.int64)
        if WHOLE:
            whole_mask = tl.broadcast_to(entry_mask[:, :, None], (ROWS, ENTRIES, COLUMNS))
            source = x + neighbour[:, :, None] * COLUMNS + column[None, None, :]
            value = tl.load(source, mask=whole_mask, other=0.0).to(real)
        else:
            value_mask = entry_mask[:, :, None] & column_mask[None, None, :]
            source = x + neighbour[:, :, None] * width + column[None, None, :]
            value = tl.load(source, mask=value_mask, other=0.0).to(real)
        if RUN_WEIGHTS:
            run = (column // run_width).to(tl.int64)
            value *= tl.load(
                weight + run[None, None, :] * nnz + place[:, :, None],
                mask=entry_mask[:, :, None] & column_mask[None, None, :],
                other=0.0,
            )
        elif weight is not None:
            value *= tl.load(weight + place, mask=entry_mask, other=0.0)[:, :, None]
        total += value

    result = tl.sum(total, axis=1) * tl.full((), a, real)
    if scale is not None:
        result *= tl.load(scale + row, mask=row_mask, other=0.0)[:, None]
    position = row[:, None] * width + column[None, :]
    mask = row_mask[:, None] & column_mask[None, :]
    outer_position = position
    if outer is not None:
        outer_row = tl.load(outer + row, mask=row_mask, other=0).to(tl.int64)
        outer_position = outer_row[:, None] * width + column[None, :]
    if HAS_SELF:
        result += tl.full((), b, real) * tl.load(x + position, mask=mask, other=0.0)
    if previous is not None:
        result += tl.full((), c, real) * tl.load(previous + position, mask=mask, other=0.0)
    if other is not None:
        factor = tl.load(row_scale + row, mask=row_mask, other=0.0)[:, None]
        result += factor * tl.load(other + outer_position, mask=mask, other=0.0)
    tl.store(out + position, result, mask=mask)
    if scaled_out is not None:
        factor = tl.load(row_scale + row, mask=row_mask, other=1.0)[:, None]
        tl.store(scaled_out + outer_position, result / factor, mask=mask)


@triton.jit
def _scale_rows_kernel(x, order, root, y, copy, size, width, BLOCK: tl.constexpr):
    """Compute y[i] = root[i]·x[order[i]], and copy x if ``copy`` is given."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    row = place // width
    source = place
    if order is not None:
        source = tl.load(order + row, mask=inside, other=0).to(tl.int64) * width + place % width
    value = tl.load(x + source, mask=inside, other=0.0)
    tl.store(y + place, value * tl.load(root + row, mask=inside, other=0.0), mask=inside)
    if copy is not None:
        tl.store(copy + source, value, mask=inside)


def terms(x: Tensor, operator: Operator, table: Table) -> Tensor:
    r"""Return X_0 … X_K with X_{k+1} = a Â X_k + b X_k + c X_{k-1}.

    The recurrence runs in :math:`Y_k = D^{-1/2} X_k`, where it needs no edge values:
    :math:`D^{-1/2}\hat A X = D^{-1} A Y`.
    """
    graph = _Graph.of(operator, x.dtype)
    x = x.contiguous()
    out = x.new_empty((len(table) + 1, *x.shape))
    y = [graph.scale_rows(x, out[0]), torch.empty_like(x), torch.empty_like(x)]
    for k, (a, b, c) in enumerate(table):
        previous = y[(k - 1) % 3] if c else None
        graph.step(y[k % 3], y[(k + 1) % 3], a, b, previous, c, scaled_out=out[k + 1])
    return out


def each_term(x: Tensor, operator: Operator, table: Table) -> Iterator[Tensor]:
    """Yield the terms of :func:`terms` one by one, in four buffers of which ``x`` is one.

    A term is valid until the next one is requested.
    """
    graph = _Graph.of(operator, x.dtype)
    y = [graph.scale_rows(x), torch.empty_like(x), torch.empty_like(x)]
    yield x
    for k, (a, b, c) in enumerate(table):
        previous = y[(k - 1) % 3] if c else None
        graph.step(y[k % 3], y[(k + 1) % 3], a, b, previous, c, scaled_out=x)
        yield x


def adjoint(grad: Tensor, operator: Operator, table: Table) -> Tensor:
    """Return S_0 with S_k = G_k + a_k Â S_{k+1} + b_k S_{k+1} + c_{k+1} S_{k+2} (Clenshaw)."""
    graph = _Graph.of(operator, grad.dtype)
    grad = grad.contiguous()
    K = len(table)
    if K == 0:
        return grad[0].clone()
    z = [graph.scale_rows(grad[K]), torch.empty_like(grad[0]), torch.empty_like(grad[0])]
    result = torch.empty_like(grad[0])
    for i, k in enumerate(range(K - 1, -1, -1)):
        a, b, _ = table[k]
        c = table[k + 1][2] if k + 1 < K else 0.0
        previous = z[(i - 1) % 3] if c else None
        scaled_out = result if k == 0 else None
        graph.step(z[i % 3], z[(i + 1) % 3], a, b, previous, c, grad[k], scaled_out)
    return result


def matmul(matrix: Matrix, x: Tensor) -> Tensor:
    """Return S x."""
    return matrix_step(matrix, x, 1.0, 0.0, None, 0.0)


def matrix_step(
    matrix: Matrix, x: Tensor, a: float, b: float, previous: Tensor | None, c: float
) -> Tensor:
    """Return a S x + b x + c · previous. Without ``previous`` the last term is left out."""
    out = x.new_empty(matrix.shape[0], x.shape[1])
    groups = RowGroups.of(matrix.indptr)
    if previous is not None:
        previous = previous.contiguous()
    _product(
        matrix.indptr,
        matrix.indices,
        groups,
        x.contiguous(),
        out,
        weight=matrix.values,
        a=a,
        b=b,
        previous=previous,
        c=c,
    )
    return out


def batched_matmul(matrix: Matrix, values: Tensor, x: Tensor) -> Tensor:
    """Return S_i x_i for values ``[batch, nnz]`` and x ``[rows, batch, columns]``."""
    batch, columns = x.shape[1:]
    out = x.new_empty(matrix.shape[0], batch * columns)
    groups = RowGroups.of(matrix.indptr)
    x = x.contiguous().view(x.shape[0], -1)
    values = values.contiguous()
    _product(matrix.indptr, matrix.indices, groups, x, out, weight=values, run_width=columns)
    return out.view(-1, batch, columns)


@dataclass(frozen=True)
class RowGroups:
    """The rows of a matrix: those above ``_LONG`` entries, longest first, and the rest."""

    long: Tensor
    short: Tensor
    mean_length: float
    """Mean number of entries of the short rows."""
    max_length: int
    """Number of entries of the longest of the short rows."""

    @classmethod
    def of(cls, indptr: Tensor) -> "RowGroups":
        """Return the groups of a matrix, cached for the life of ``indptr``."""
        return _GROUPS.lookup((indptr,), None, lambda: cls._make(indptr))

    @classmethod
    def _make(cls, indptr: Tensor) -> "RowGroups":
        length = indptr.diff()
        order = torch.argsort(length, descending=True, stable=True).int()
        count = int((length > _LONG).sum())
        short = order[count:]
        if order.numel() <= LARGE:
            short = short.sort().values
        mean = 0.0
        longest = 0
        if short.numel():
            lengths = length[short.long()]
            mean = float(lengths.float().mean())
            longest = int(lengths.max())
        return cls(order[:count].contiguous(), short.contiguous(), mean, longest)


@dataclass(frozen=True)
class _Graph:
    """What the steps of a recurrence read of a graph.

    The nodes of a large graph are ordered by degree, if they are not yet: see
    :mod:`nfgnn.kernels.node_order`.
    """

    indptr: Tensor
    indices: Tensor
    weight: Tensor | None
    groups: RowGroups
    root: Tensor
    """D^-1/2, with 1 for nodes without neighbours, so that the scaling can be undone."""
    inverse_degree: Tensor
    """D^-1, with 0 for nodes without neighbours."""
    order: Tensor | None
    """The order of the nodes, or ``None`` if it is that of the input."""

    @classmethod
    def of(cls, operator: Operator, dtype: torch.dtype) -> "_Graph":
        # Kept by the operator, because it shares the operator's tensors and must end with them.
        if dtype not in operator.prepared:
            operator.prepared[dtype] = cls._make(operator, dtype)
        graph: _Graph = operator.prepared[dtype]
        return graph

    @classmethod
    def _make(cls, operator: Operator, dtype: torch.dtype) -> "_Graph":
        indptr = operator.indptr
        indices = operator.indices
        weight = operator.weight
        scale = operator.scale
        order = None
        length = indptr.diff()
        if length.numel() > LARGE and bool((length.diff() > 0).any()):
            order = torch.argsort(length, descending=True, stable=True)
            indptr, indices, weight = _reordered(indptr, indices, weight, order)
            scale = scale[order]
        root = torch.where(scale > 0, scale, 1.0).to(dtype)
        inverse_degree = (scale * scale).to(dtype)
        weight = None if weight is None else weight.to(dtype)
        groups = RowGroups.of(indptr)
        return cls(indptr, indices, weight, groups, root, inverse_degree, order)

    def scale_rows(self, x: Tensor, copy: Tensor | None = None) -> Tensor:
        """Return D^-1/2 x in the inner order of nodes, and copy x if ``copy`` is given."""
        y = torch.empty_like(x)
        size, width = x.numel(), x.shape[1]
        blocks = triton.cdiv(size, 1024)
        _scale_rows_kernel[(blocks,)](x, self.order, self.root, y, copy, size, width, 1024)
        return y

    def step(
        self,
        x: Tensor,
        out: Tensor,
        a: float,
        b: float,
        previous: Tensor | None,
        c: float,
        other: Tensor | None = None,
        scaled_out: Tensor | None = None,
    ) -> None:
        """Compute one step of a recurrence: see the kernel."""
        _product(
            self.indptr,
            self.indices,
            self.groups,
            x,
            out,
            weight=self.weight,
            scale=self.inverse_degree,
            a=a,
            b=b,
            previous=previous,
            c=c,
            other=other,
            row_scale=self.root,
            scaled_out=scaled_out,
            outer=self.order,
        )


def _reordered(
    indptr: Tensor, indices: Tensor, weight: Tensor | None, order: Tensor
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the same matrix with rows and columns in this order.

    It is built in blocks of rows: with positions of 64 bits, billions of entries would need many
    times their own memory.
    """
    length = indptr.diff()[order].long()
    start = torch.cat([length.new_zeros(1), length.cumsum(0)])
    shift = indptr[:-1][order] - start[:-1]
    position = inverse(order).to(indices.dtype)
    columns = torch.empty_like(indices)
    weights = None if weight is None else torch.empty_like(weight)
    blocks = max(1, -(-indices.numel() // _BLOCK_ENTRIES))
    steps = torch.arange(1, blocks, device=order.device) * _BLOCK_ENTRIES
    inner = torch.searchsorted(start, steps).tolist()
    bounds = [0, *inner, order.numel()]
    ends = start[torch.tensor(bounds, device=order.device)].tolist()
    for block in range(blocks):
        rows = slice(bounds[block], bounds[block + 1])
        part = slice(ends[block], ends[block + 1])
        entry = torch.arange(part.start, part.stop, device=order.device)
        entry += torch.repeat_interleave(shift[rows], length[rows])
        columns[part] = position[indices[entry].long()]
        if weight is not None and weights is not None:
            weights[part] = weight[entry]
    return start.to(indptr.dtype), columns, weights


def _product(
    indptr: Tensor,
    indices: Tensor,
    groups: RowGroups,
    x: Tensor,
    out: Tensor,
    *,
    weight: Tensor | None = None,
    run_width: int = 0,
    scale: Tensor | None = None,
    a: float = 1.0,
    b: float = 0.0,
    previous: Tensor | None = None,
    c: float = 0.0,
    other: Tensor | None = None,
    row_scale: Tensor | None = None,
    scaled_out: Tensor | None = None,
    outer: Tensor | None = None,
) -> None:
    """Launch the kernel for all rows. ``x`` and ``out`` are ``[rows, width]``."""
    width = x.shape[1]
    columns = min(128, max(2, triton.next_power_of_2(width)))
    whole = width == columns and width in _WHOLE and x.dtype == torch.float32
    wide = x.numel() > 2**31 - 1
    real = tl.float64 if x.dtype == torch.float64 else tl.float32
    for rows, long in ((groups.long, True), (groups.short, False)):
        num_rows = rows.numel()
        if not num_rows:
            continue
        block_rows, entries, warps = _blocks(groups, long, width, columns)
        grid = (triton.cdiv(num_rows, block_rows), triton.cdiv(width, columns))
        _rows_kernel[grid](
            indptr, indices, weight, rows, num_rows,
            x, scale, previous, other, row_scale, outer, out, scaled_out,
            width, run_width or width, indices.numel(), a, b, c,
            bool(run_width), b != 0, whole, wide,
            block_rows, entries, columns, real, num_warps=warps,
        )  # fmt: skip


def _blocks(groups: RowGroups, long: bool, width: int, columns: int) -> tuple[int, int, int]:
    """Return rows per program, entries read at a time and warps.

    Measured on an H200: see benchmarks/results/gpu_check.md. For wide rows,
    benchmarks/runs_at_once.py compares the alternatives.
    """
    if long:
        return 1, max(2, min(512, 4096 // columns)), 4
    if groups.short.numel() <= LARGE:
        if width >= _WIDE and groups.max_length <= _WIDE_LENGTH:
            # There are enough columns to occupy the device, and rows with common neighbours read
            # them once.
            return _WIDE_BLOCKS
        # A small graph: one program per row, and few steps for the longest of them.
        return 1, min(32, 2048 // columns), 1
    half = triton.next_power_of_2(int(groups.mean_length / 2) + 1)
    entries = min(max(4, 64 // columns), max(2, half))
    values = 4096 if columns <= 4 else 2048
    block_rows = max(1, min(64, values // (entries * columns)))
    warps = 2 if block_rows * entries * columns >= 1024 else 1
    return block_rows, entries, warps
