"""Sparse products on the GPU: one Triton kernel, launched once per group of rows of like length.

A program takes a block of rows and a block of columns and walks along the rows' entries. Short rows share a program;
a long row has a program of its own that reads many entries at a time, and long rows are started first, so that hubs
do not hold up the end. Sums are taken in a fixed order: the same input gives the same bits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor

from nfgnn.spectral.node_order import LARGE, rank_of
from nfgnn.tensor_cache import TensorCache

if TYPE_CHECKING:
    from nfgnn.spectral.csr import CSR
    from nfgnn.spectral.laplacian import ScaledLaplacian
    from nfgnn.spectral.recurrence import Table

_GRAPHS, _GROUPS = TensorCache(), TensorCache()
_LONG = 256  # entries from which a row has a program of its own
_WHOLE = (4, 64)  # columns that are read in pieces of 16 bytes, where an H200 was faster so


@triton.jit
def _rows_kernel(  # type: ignore[no-untyped-def]
    indptr, indices, weight, rows, num_rows,
    x, scale, previous, other, row_scale, outer, out, scaled_out,
    width, per_member, nnz, a: tl.float64, b: tl.float64, c: tl.float64, d: tl.float64,
    HAS_WEIGHT: tl.constexpr, MEMBER_WEIGHTS: tl.constexpr, HAS_SCALE: tl.constexpr, HAS_SELF: tl.constexpr,
    HAS_PREVIOUS: tl.constexpr, HAS_OTHER: tl.constexpr, HAS_SCALED_OUT: tl.constexpr, HAS_OUTER: tl.constexpr,
    WHOLE: tl.constexpr, WIDE: tl.constexpr,
    ROWS: tl.constexpr, ENTRIES: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """out[i] = a·scale[i]·Σ_j w_ij x[j] + b·x[i] + c·previous[i] + d·row_scale[i]·other[i]; scaled_out = out /
    row_scale.

    Everything after the sum is optional. Columns of one member lie together, ``per_member`` of them. ``other`` and
    ``scaled_out`` may have their rows in another order: row i is their row ``outer[i]``. WHOLE: there
    are exactly COLUMNS columns, and a neighbour's are read in pieces of 16 bytes. WIDE: places are numbered by 64 bits.
    All in the precision of x; the factors come in float64, so that either has them as exactly as it can.
    """
    real = x.dtype.element_ty
    slot = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = slot < num_rows
    row = tl.load(rows + slot, mask=there, other=0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < width
    start = tl.load(indptr + row, mask=there, other=0)
    length = tl.load(indptr + row + 1, mask=there, other=0) - start
    total = tl.zeros((ROWS, ENTRIES, COLUMNS), real)
    for first in range(0, tl.max(length, axis=0), ENTRIES):
        entry = first + tl.arange(0, ENTRIES)
        valid = entry[None, :] < length[:, None]
        place = start[:, None] + entry[None, :]
        if WHOLE and COLUMNS == 4:  # one thread needs an index: leave the cache to x
            neighbour = tl.load(indices + place, mask=valid, other=0, eviction_policy="evict_first")
        else:
            neighbour = tl.load(indices + place, mask=valid, other=0)
        if WIDE:
            neighbour = neighbour.to(tl.int64)
        if WHOLE:
            all_of_it = tl.broadcast_to(valid[:, :, None], (ROWS, ENTRIES, COLUMNS))
            value = tl.load(
                x + neighbour[:, :, None] * COLUMNS + column[None, None, :],
                mask=all_of_it,
                other=0.0,
            )
        else:
            value = tl.load(
                x + neighbour[:, :, None] * width + column[None, None, :],
                mask=valid[:, :, None] & inside[None, None, :], other=0.0,
            )  # fmt: skip
        if MEMBER_WEIGHTS:
            member = (column // per_member).to(tl.int64)
            value *= tl.load(
                weight + member[None, None, :] * nnz + place[:, :, None],
                mask=valid[:, :, None] & inside[None, None, :], other=0.0,
            )  # fmt: skip
        elif HAS_WEIGHT:
            value *= tl.load(weight + place, mask=valid, other=0.0)[:, :, None]
        total += value
    result = tl.sum(total, axis=1) * tl.full((), a, real)
    if HAS_SCALE:
        result *= tl.load(scale + row, mask=there, other=0.0)[:, None]
    position = row[:, None] * width + column[None, :]
    mask = there[:, None] & inside[None, :]
    outside = position
    if HAS_OUTER:
        outside = (
            tl.load(outer + row, mask=there, other=0).to(tl.int64)[:, None] * width
            + column[None, :]
        )
    if HAS_SELF:
        result += tl.full((), b, real) * tl.load(x + position, mask=mask, other=0.0)
    if HAS_PREVIOUS:
        result += tl.full((), c, real) * tl.load(previous + position, mask=mask, other=0.0)
    if HAS_OTHER:
        factor = tl.load(row_scale + row, mask=there, other=0.0)[:, None] * tl.full((), d, real)
        result += factor * tl.load(other + outside, mask=mask, other=0.0)
    tl.store(out + position, result, mask=mask)
    if HAS_SCALED_OUT:
        factor = tl.load(row_scale + row, mask=there, other=1.0)[:, None]
        tl.store(scaled_out + outside, result / factor, mask=mask)


@triton.jit
def _enter_kernel(  # type: ignore[no-untyped-def]
    x,
    order,
    root,
    y,
    copy,
    size,
    width,
    HAS_ORDER: tl.constexpr,
    HAS_COPY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """y[i] = root[i]·x[order[i]], and a copy of x."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    row = place // width
    source = place
    if HAS_ORDER:
        source = tl.load(order + row, mask=inside, other=0).to(tl.int64) * width + place % width
    value = tl.load(x + source, mask=inside, other=0.0)
    tl.store(y + place, value * tl.load(root + row, mask=inside, other=0.0), mask=inside)
    if HAS_COPY:
        tl.store(copy + source, value, mask=inside)


@dataclass(frozen=True)
class RowGroups:
    """The rows of a matrix by length: those above ``_LONG`` entries, longest first, and the others."""

    long: Tensor
    short: Tensor
    mean_length: float
    """Mean number of entries of the short rows."""

    @classmethod
    def of(cls, indptr: Tensor) -> "RowGroups":
        """Grouped once per matrix, and kept."""
        return _GROUPS.lookup((indptr,), None, lambda: cls._make(indptr))

    @classmethod
    def _make(cls, indptr: Tensor) -> "RowGroups":
        length = indptr.diff()
        order = torch.argsort(length, descending=True, stable=True).int()
        count = int((length > _LONG).sum())
        short = order[count:] if order.numel() > LARGE else order[count:].sort().values
        mean = float(length[short.long()].float().mean()) if short.numel() else 0.0
        return cls(order[:count].contiguous(), short.contiguous(), mean)


def terms(x: Tensor, operator: "ScaledLaplacian", table: "Table") -> Tensor:
    r"""The recurrence in :math:`Y_k = D^{-1/2} X_k`, where it needs no edge values: :math:`D^{-1/2}\hat A X = D^{-1}
    A Y`."""
    graph = _Graph.of(operator, x.dtype)
    x = x.contiguous()
    out = x.new_empty((len(table) + 1, *x.shape))
    y = [graph.enter(x, out[0]), torch.empty_like(x), torch.empty_like(x)]
    for k, (a, b, c) in enumerate(table):
        graph.step(
            y[k % 3],
            y[(k + 1) % 3],
            a,
            b,
            previous=y[(k - 1) % 3] if c else None,
            c=c,
            scaled_out=out[k + 1],
        )
    return out


def each_term(x: Tensor, operator: "ScaledLaplacian", table: "Table") -> Iterator[Tensor]:
    """The same terms one after the other, in four buffers: a term holds until the next is asked for."""
    graph = _Graph.of(operator, x.dtype)
    y = [graph.enter(x), torch.empty_like(x), torch.empty_like(x)]
    yield x
    for k, (a, b, c) in enumerate(table):
        graph.step(
            y[k % 3],
            y[(k + 1) % 3],
            a,
            b,
            previous=y[(k - 1) % 3] if c else None,
            c=c,
            scaled_out=x,
        )
        yield x


def adjoint(grad: Tensor, operator: "ScaledLaplacian", table: "Table") -> Tensor:
    """Clenshaw's recurrence in the same variable."""
    graph, K = _Graph.of(operator, grad.dtype), len(table)
    grad = grad.contiguous()
    if K == 0:
        return grad[0].clone()
    z = [graph.enter(grad[K]), torch.empty_like(grad[0]), torch.empty_like(grad[0])]
    result = torch.empty_like(grad[0])
    for i, k in enumerate(range(K - 1, -1, -1)):
        a, b, _ = table[k]
        c = table[k + 1][2] if k + 1 < K else 0.0
        graph.step(
            z[i % 3], z[(i + 1) % 3], a, b, previous=z[(i - 1) % 3] if c else None, c=c, other=grad[k],
            scaled_out=None if k else result,
        )  # fmt: skip
    return result


def matmul(matrix: "CSR", x: Tensor) -> Tensor:
    """S x."""
    out = x.new_empty(matrix.shape[0], x.shape[1])
    return product(
        matrix.indptr,
        matrix.indices,
        RowGroups.of(matrix.indptr),
        x.contiguous(),
        out,
        weight=matrix.values,
    )


def matmul_members(matrix: "CSR", values: Tensor, x: Tensor) -> Tensor:
    """S_i x_i for a batch of values ``[batch, nnz]`` and of x ``[rows, batch, columns]``, in one launch."""
    batch, columns = x.shape[1:]
    out = x.new_empty(matrix.shape[0], batch * columns)
    groups = RowGroups.of(matrix.indptr)
    folded = x.contiguous().view(x.shape[0], -1)
    product(
        matrix.indptr,
        matrix.indices,
        groups,
        folded,
        out,
        weight=values.contiguous(),
        member_width=columns,
    )
    return out.view(-1, batch, columns)


@dataclass(frozen=True)
class _Graph:
    """What the steps of a recurrence read of a graph.

    A large graph is put in the order of its degrees, if it is not yet: see :mod:`nfgnn.spectral.node_order`. ``order`` is
    that order, or ``None``.
    """

    indptr: Tensor
    indices: Tensor
    weight: Tensor | None
    groups: RowGroups
    root: Tensor
    """D^-1/2, with 1 for nodes without neighbours, so that it can be undone."""
    inverse_degree: Tensor
    """D^-1, with 0 for nodes without neighbours."""
    order: Tensor | None

    @classmethod
    def of(cls, operator: "ScaledLaplacian", dtype: torch.dtype) -> "_Graph":
        return _GRAPHS.lookup(
            (operator.indptr, operator.weight), dtype, lambda: cls._make(operator, dtype)
        )

    @classmethod
    def _make(cls, operator: "ScaledLaplacian", dtype: torch.dtype) -> "_Graph":
        indptr, indices, weight, scale = (
            operator.indptr,
            operator.indices,
            operator.weight,
            operator.scale,
        )
        order = None
        length = indptr.diff()
        if operator.num_nodes > LARGE and bool((length.diff() > 0).any()):
            order = torch.argsort(length, descending=True, stable=True)
            indptr, indices, weight = _reordered(indptr, indices, weight, order)
            scale = scale[order]
        root = torch.where(scale > 0, scale, 1.0).to(dtype)
        weight = None if weight is None else weight.to(dtype)
        return cls(
            indptr, indices, weight, RowGroups.of(indptr), root, (scale * scale).to(dtype), order
        )

    def enter(self, x: Tensor, copy: Tensor | None = None) -> Tensor:
        """D^-1/2 x in the inner order; x itself goes into ``copy``."""
        y = torch.empty_like(x)
        _enter_kernel[(triton.cdiv(x.numel(), 1024),)](
            x,
            self.order,
            self.root,
            y,
            copy,
            x.numel(),
            x.shape[1],
            self.order is not None,
            copy is not None,
            1024,
        )
        return y

    def step(
        self, x: Tensor, out: Tensor, a: float, b: float, *, previous: Tensor | None, c: float,
        other: Tensor | None = None, scaled_out: Tensor | None = None,
    ) -> None:  # fmt: skip
        product(
            self.indptr, self.indices, self.groups, x, out, weight=self.weight, scale=self.inverse_degree, a=a, b=b,
            previous=previous, c=c, other=other, row_scale=self.root, scaled_out=scaled_out, outer=self.order,
        )  # fmt: skip


def _reordered(
    indptr: Tensor, indices: Tensor, weight: Tensor | None, order: Tensor
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The same matrix with rows and columns in this order."""
    length = indptr.diff()[order].long()
    start = torch.cat([length.new_zeros(1), length.cumsum(0)])
    shift = torch.repeat_interleave(indptr[:-1][order] - start[:-1], length)
    entry = torch.arange(indices.numel(), device=order.device) + shift
    return (
        start.to(indptr.dtype),
        rank_of(order)[indices[entry].long()].to(indices.dtype),
        None if weight is None else weight[entry],
    )


def product(
    indptr: Tensor, indices: Tensor, groups: RowGroups, x: Tensor, out: Tensor, *,
    weight: Tensor | None = None, member_width: int = 0, scale: Tensor | None = None, a: float = 1.0, b: float = 0.0,
    previous: Tensor | None = None, c: float = 0.0, other: Tensor | None = None, row_scale: Tensor | None = None,
    d: float = 1.0, scaled_out: Tensor | None = None, outer: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Launch the kernel for all rows; see there for what is computed. ``x`` and ``out`` are ``[rows, width]``."""
    width = x.shape[1]
    columns = min(128, max(2, triton.next_power_of_2(width)))
    whole, wide = width == columns in _WHOLE and x.dtype == torch.float32, x.numel() > 2**31 - 1
    for rows, long in ((groups.long, True), (groups.short, False)):
        if not rows.numel():
            continue
        block_rows, entries, warps = _blocks(rows.numel(), long, groups.mean_length, columns)
        _rows_kernel[(triton.cdiv(rows.numel(), block_rows), triton.cdiv(width, columns))](
            indptr, indices, weight, rows, rows.numel(), x, scale, previous, other, row_scale, outer, out, scaled_out,
            width, member_width or width, indices.numel(), a, b, c, d,
            weight is not None, bool(member_width), scale is not None, b != 0, previous is not None and c != 0,
            other is not None, scaled_out is not None, outer is not None, whole, wide,
            block_rows, entries, columns, num_warps=warps,
        )  # fmt: skip
    return out


def _blocks(rows: int, long: bool, mean_length: float, columns: int) -> tuple[int, int, int]:
    """Rows per program, entries read at a time, warps: measured on an H200 (benchmarks/results/gpu_check.md)."""
    if long:
        return 1, max(2, min(512, 4096 // columns)), 4
    if rows <= LARGE:  # a program for every row, and few steps for the longest of them
        return 1, min(32, 2048 // columns), 1
    entries = min(max(4, 64 // columns), max(2, triton.next_power_of_2(int(mean_length / 2) + 1)))
    block_rows = max(1, min(64, (4096 if columns <= 4 else 2048) // (entries * columns)))
    return block_rows, entries, 2 if block_rows * entries * columns >= 1024 else 1
