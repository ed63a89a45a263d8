"""Second implementations, dense and literal: what the library is compared with."""

import torch
from torch import Tensor


def adjacency(edge_index: Tensor, n: int, weight: Tensor | None = None) -> Tensor:
    """A in float64."""
    A = torch.zeros(n, n, dtype=torch.float64)
    A[edge_index[0], edge_index[1]] = 1.0 if weight is None else weight.double()
    return A


def normalised(A: Tensor) -> Tensor:
    """D^-1/2 A D^-1/2, zero rows for nodes without neighbours."""
    degree = A.sum(1)
    scale = torch.where(degree > 0, degree.rsqrt(), 0.0)
    return scale[:, None] * A * scale


def laplacian(edge_index: Tensor, n: int) -> Tensor:
    """L = I - D^-1/2 A D^-1/2."""
    return torch.eye(n, dtype=torch.float64) - normalised(adjacency(edge_index, n))


def scaled_laplacian(
    edge_index: Tensor, n: int, lambda_max: float = 2.0, weight: Tensor | None = None
) -> Tensor:
    """2 L / λ_max - I."""
    identity = torch.eye(n, dtype=torch.float64)
    return 2 * (identity - normalised(adjacency(edge_index, n, weight))) / lambda_max - identity


def function_of(matrix: Tensor, values_at: Tensor, eigenvectors: Tensor) -> Tensor:
    """U diag(values) Uᵀ."""
    assert matrix.shape == eigenvectors.shape
    return eigenvectors * values_at @ eigenvectors.T
