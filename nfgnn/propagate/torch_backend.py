"""The products through torch's own sparse matrices: MKL on the CPU, cuSPARSE on the GPU, float32 and float64."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from nfgnn.propagate.csr import CSR
    from nfgnn.propagate.laplacian import ScaledLaplacian
    from nfgnn.propagate.recurrence import Table


def terms(x: Tensor, operator: "ScaledLaplacian", table: "Table") -> Tensor:
    """X_0 … X_K with X_{k+1} = a Â X_k + b X_k + c X_{k-1}."""
    adjacency = operator.adjacency(x.dtype)
    out = x.new_empty((len(table) + 1, *x.shape))
    out[0] = x
    for k, (a, b, c) in enumerate(table):
        _step(adjacency, out[k], a, b, out[k - 1], c, out=out[k + 1])
    return out


def adjoint(grad: Tensor, operator: "ScaledLaplacian", table: "Table") -> Tensor:
    """S_0 with S_k = G_k + a_k Â S_{k+1} + b_k S_{k+1} + c_{k+1} S_{k+2}."""
    adjacency, K = operator.adjacency(grad.dtype), len(table)
    older, newer = None, grad[K].contiguous()
    for k in range(K - 1, -1, -1):
        a, b, _ = table[k]
        c = table[k + 1][2] if k + 1 < K else 0.0
        step = _step(adjacency, newer, a, b, grad[k], 1.0)
        if older is not None and c:
            step.add_(older, alpha=c)
        older, newer = newer, step
    return newer.clone() if K == 0 else newer


def matmul(matrix: "CSR", x: Tensor) -> Tensor:
    """S x."""
    return torch.mm(matrix.tensor, x)


def matmul_members(matrix: "CSR", values: Tensor, x: Tensor) -> Tensor:
    """S_i x_i for a batch of values ``[batch, nnz]`` and of x ``[rows, batch, columns]``, one after the other."""
    products = [matmul(matrix.with_values(v), m.contiguous()) for v, m in zip(values, x.unbind(1))]
    return torch.stack(products, 1)


def _step(adjacency: "CSR", x: Tensor, a: float, b: float, add: Tensor, c: float, out: Tensor | None = None) -> Tensor:
    """a Â x + b x + c · add."""
    if c:
        result = torch.addmm(add, adjacency.tensor, x, beta=c, alpha=a, out=out)
    else:
        result = torch.mm(adjacency.tensor, x, out=out)
        if a != 1:
            result.mul_(a)
    return result.add_(x, alpha=b) if b else result
