"""The largest eigenvalue of a graph's Laplacian, by the Lanczos method."""

import torch
from torch import Tensor

from nfgnn.spectral.csr import CSR


def largest_eigenvalue(adjacency: CSR, tolerance: float = 1e-6, max_steps: int = 200) -> float:
    r"""Return an upper bound of the largest eigenvalue of :math:`L = I - \hat A`.

    Lanczos iteration with full reorthogonalisation from a fixed random start. The residual of the
    leading Ritz pair bounds its distance from an eigenvalue. It is added to the Ritz value, so that
    the scaled spectrum stays within :math:`[-1, 1]`. The result is at most 2, the bound for every
    normalised Laplacian.
    """
    n = adjacency.shape[0]
    if adjacency.values.numel() == 0:
        return 1.0 if n else 2.0
    generator = torch.Generator().manual_seed(0)
    v = torch.randn(n, 1, generator=generator, dtype=torch.float64).to(adjacency.values)
    basis = [v / v.norm()]
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    top = residual = 2.0
    for _ in range(min(n, max_steps)):
        w = basis[-1] - adjacency @ basis[-1]
        diagonal.append(float((basis[-1] * w).sum()))
        V = torch.cat(basis, 1)
        for _ in range(2):  # in floating point a single pass leaves a component along V
            w = w - V @ (V.T @ w)
        beta = float(w.norm())
        values, vectors = torch.linalg.eigh(_tridiagonal(diagonal, off_diagonal))
        top = float(values[-1])
        residual = beta * abs(float(vectors[-1, -1]))
        if residual < tolerance or beta < 1e-12:
            break
        off_diagonal.append(beta)
        basis.append(w / beta)
    return min(top + residual, 2.0)


def _tridiagonal(diagonal: list[float], off_diagonal: list[float]) -> Tensor:
    beside = torch.tensor(off_diagonal, dtype=torch.float64)
    center = torch.tensor(diagonal, dtype=torch.float64)
    return torch.diag(center) + torch.diag(beside, 1) + torch.diag(beside, -1)
