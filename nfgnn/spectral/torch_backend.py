"""Sparse products and recurrences with torch: MKL on the CPU, cuSPARSE on a GPU without Triton.

:mod:`nfgnn.kernels.recurrence` is the twin for GPUs: the same functions as Triton kernels.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from nfgnn.spectral.csr import CSR
    from nfgnn.spectral.laplacian import ScaledLaplacian

Table = list[tuple[float, float, float]]
"""Rows (a, b, c) of a recurrence in Â: see :func:`~nfgnn.spectral.recurrence_table`."""

_BAG_COLUMNS = 16  # number of columns from which embedding_bag is faster than MKL's product


def laplacian_table(rows: Sequence[Sequence[float]], lambda_max: float) -> Table:
    r"""Return a recurrence in :math:`\tilde L` as one in :math:`\hat A`."""
    stretch = 2 / lambda_max
    table = []
    for k, (a, b, c) in enumerate(rows):
        # X^(-1) is zero, so c_0 has no effect. Backends have no such term: it would be whatever
        # their buffer held before.
        table.append((-a * stretch, a * (stretch - 1) + b, c if k else 0.0))
    return table


def terms(x: Tensor, operator: "ScaledLaplacian", table: Table) -> Tensor:
    """Return X_0 … X_K with X_{k+1} = a Â X_k + b X_k + c X_{k-1}."""
    matrix = operator.adjacency(x.dtype).tensor
    out = x.new_empty((len(table) + 1, *x.shape))
    out[0] = x
    for k, (a, b, c) in enumerate(table):
        # With k = 0, out[-1] is not read, because c is zero there (recurrence_table).
        step(matrix, out[k], a, b, out[k - 1], c, out=out[k + 1])
    return out


def each_term(x: Tensor, operator: "ScaledLaplacian", table: Table) -> Iterator[Tensor]:
    """Yield the terms of :func:`terms` one by one, in two buffers of which ``x`` is one.

    A term is valid until the next one is requested.
    """
    matrix = operator.adjacency(x.dtype).tensor
    current = x
    previous = torch.empty_like(x)
    yield current
    for a, b, c in table:
        step(matrix, current, a, b, previous, c, out=previous)
        previous, current = current, previous
        yield current


def adjoint(grad: Tensor, operator: "ScaledLaplacian", table: Table) -> Tensor:
    """Return S_0 with S_k = G_k + a_k Â S_{k+1} + b_k S_{k+1} + c_{k+1} S_{k+2} (Clenshaw)."""
    matrix = operator.adjacency(grad.dtype).tensor
    K = len(table)
    older = None
    newer = grad[K].contiguous()
    for k in range(K - 1, -1, -1):
        a, b, _ = table[k]
        c = table[k + 1][2] if k + 1 < K else 0.0
        newest = step(matrix, newer, a, b, grad[k], 1.0)
        if older is not None and c:
            newest.add_(older, alpha=c)
        older, newer = newer, newest
    # Without a step, the result would share the memory of the incoming gradient.
    return newer.clone() if K == 0 else newer


def matmul(matrix: "CSR", x: Tensor) -> Tensor:
    """Return S x. A signal in half precision is multiplied in float32."""
    if x.dtype in (torch.bfloat16, torch.float16):
        return matmul(matrix, x.float()).to(x.dtype)
    x = x.contiguous()
    if x.is_cuda or x.dtype != torch.float32 or x.shape[1] < _BAG_COLUMNS or not x.shape[0]:
        return torch.mm(matrix.tensor, x)
    # On the CPU with many columns, a row of S sums up a weighted bag of rows of x.
    values = matrix.values.contiguous()
    sums = torch.embedding_bag(x, matrix.indices, matrix.indptr, False, 0, False, values, True)
    return sums[0]


def batched_matmul(matrix: "CSR", values: Tensor, x: Tensor) -> Tensor:
    """Return S_i x_i for values ``[batch, nnz]`` and x ``[rows, batch, columns]``."""
    products = [
        matmul(matrix.with_values(own), columns.contiguous())
        for own, columns in zip(values, x.unbind(1))
    ]
    return torch.stack(products, 1)


def step(
    matrix: Tensor,
    x: Tensor,
    a: float,
    b: float,
    add: Tensor,
    c: float,
    out: Tensor | None = None,
    own: Tensor | None = None,
) -> Tensor:
    """Return a Â x + b x + c · add, for all rows or for a block of them.

    On a CPU, a row is summed in the same order in every block of rows, so the result is bitwise the
    same however the rows are cut. On Intel processors, the order depends on the number of columns,
    because MKL has kernels of its own for 4, 8, 12, 16, 20 and 24 columns.

    Args:
        matrix: Â, or a block of its rows, as a sparse CSR tensor.
        x: all rows of the term.
        a, b, c: the factors.
        add: the rows of the term before; may be ``out``.
        out: where the result is stored.
        own: the rows of x that belong to the block. (default: all)
    """
    if c:
        result = torch.addmm(add, matrix, x, beta=c, alpha=a, out=out)
    else:
        if out is None:
            result = torch.mm(matrix, x)
        else:
            # torch.mm with out= allocates another term. With beta=0, `out` is not read.
            result = torch.addmm(out, matrix, x, beta=0, out=out)
        if a != 1:
            result.mul_(a)
    if b:
        result.add_(x if own is None else own, alpha=b)
    return result
