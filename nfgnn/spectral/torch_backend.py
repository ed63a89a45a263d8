"""The products through torch's own sparse matrices: MKL on the CPU, cuSPARSE on a GPU without Triton."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from nfgnn.spectral.csr import CSR
    from nfgnn.spectral.laplacian import ScaledLaplacian
    from nfgnn.spectral.recurrence import Table

_BAGS = 16  # columns from which a row's entries are summed up as a bag


def terms(x: Tensor, operator: "ScaledLaplacian", table: "Table") -> Tensor:
    """X_0 … X_K with X_{k+1} = a Â X_k + b X_k + c X_{k-1}."""
    adjacency = operator.adjacency(x.dtype)
    out = x.new_empty((len(table) + 1, *x.shape))
    out[0] = x
    for k, (a, b, c) in enumerate(table):
        step(adjacency.tensor, out[k], a, b, out[k - 1], c, out=out[k + 1])
    return out


def each_term(x: Tensor, operator: "ScaledLaplacian", table: "Table") -> Iterator[Tensor]:
    """X_0 … X_K one after the other in two buffers, ``x`` being one of them: a term holds until the next is asked
    for."""
    matrix = operator.adjacency(x.dtype).tensor
    previous, current = torch.empty_like(x), x
    yield current
    for a, b, c in table:
        step(matrix, current, a, b, previous, c, out=previous)
        previous, current = current, previous
        yield current


def adjoint(grad: Tensor, operator: "ScaledLaplacian", table: "Table") -> Tensor:
    """S_0 with S_k = G_k + a_k Â S_{k+1} + b_k S_{k+1} + c_{k+1} S_{k+2}."""
    adjacency, K = operator.adjacency(grad.dtype), len(table)
    older, newer = None, grad[K].contiguous()
    for k in range(K - 1, -1, -1):
        a, b, _ = table[k]
        c = table[k + 1][2] if k + 1 < K else 0.0
        newest = step(adjacency.tensor, newer, a, b, grad[k], 1.0)
        if older is not None and c:
            newest.add_(older, alpha=c)
        older, newer = newer, newest
    return newer.clone() if K == 0 else newer


def matmul(matrix: "CSR", x: Tensor) -> Tensor:
    """S x. With many columns in float32 on a CPU as bags of rows of x, which is faster than MKL's product."""
    if x.is_cuda or x.dtype != torch.float32 or x.shape[1] < _BAGS or not x.shape[0]:
        return torch.mm(matrix.tensor, x)
    values = matrix.values.contiguous()
    return torch.embedding_bag(
        x.contiguous(), matrix.indices, matrix.indptr, False, 0, False, values, True
    )[0]


def matmul_members(matrix: "CSR", values: Tensor, x: Tensor) -> Tensor:
    """S_i x_i for a batch of values ``[batch, nnz]`` and of x ``[rows, batch, columns]``, one after the other."""
    products = [matmul(matrix.with_values(v), m.contiguous()) for v, m in zip(values, x.unbind(1))]
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
    """a Â x + b x + c · add, for all rows or for a block of them.

    A row is summed in the order of its entries whatever the block and the columns, so the bits do not depend on how a
    matrix is cut (``tests/scale`` holds this).

    Args:
        matrix: Â, or a block of its rows, as a sparse CSR tensor.
        x: all rows of the term.
        add: the rows of the term before; it may be ``out``.
        own: the block's own rows of x; all by default.
    """
    if c:
        result = torch.addmm(add, matrix, x, beta=c, alpha=a, out=out)
    else:
        # In place: torch.mm with out= makes a whole term more on the way. With beta = 0 what is in `out` is not read.
        result = (
            torch.mm(matrix, x) if out is None else torch.addmm(out, matrix, x, beta=0, out=out)
        )
        if a != 1:
            result.mul_(a)
    return result.add_(x if own is None else own, alpha=b) if b else result
