"""The largest eigenvalue of a graph's Laplacian, by Lanczos' method."""

import torch

from nfgnn.spectral.csr import CSR


def largest_eigenvalue(adjacency: CSR, tolerance: float = 1e-6, max_steps: int = 200) -> float:
    r"""The largest eigenvalue of :math:`L = I - \hat A`, from above.

    Lanczos' method with full reorthogonalisation from a fixed random start; the residual of the leading Ritz pair
    bounds its distance from an eigenvalue and is added to it, so that the scaled spectrum does not leave
    :math:`[-1, 1]`. Never above 2, which no normalised Laplacian exceeds.
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
        for _ in range(2):  # once is not enough in floating point, twice is
            w = w - V @ (V.T @ w)
        beta = float(w.norm())
        values, vectors = torch.linalg.eigh(
            torch.diag(torch.tensor(diagonal, dtype=torch.float64))
            + torch.diag(torch.tensor(off_diagonal, dtype=torch.float64), 1)
            + torch.diag(torch.tensor(off_diagonal, dtype=torch.float64), -1)
        )
        top, residual = float(values[-1]), beta * abs(float(vectors[-1, -1]))
        if residual < tolerance or beta < 1e-12:
            break
        off_diagonal.append(beta)
        basis.append(w / beta)
    return min(top + residual, 2.0)
