"""Dense and sparse node features."""

from typing import TypeGuard

import torch
from torch import Tensor

from nfgnn.spectral import CSR

Features = Tensor | CSR
"""Node features ``[n, channels]``: a dense or a sparse tensor, or a matrix in compressed rows."""


def is_dense(x: Features) -> TypeGuard[Tensor]:
    """Return whether features are a dense tensor."""
    return isinstance(x, Tensor) and x.layout == torch.strided


def as_csr(x: Features) -> CSR:
    """Return sparse features in compressed rows."""
    return x if isinstance(x, CSR) else CSR.from_tensor(x)


def as_dense(x: Features) -> Tensor:
    """Return features as a dense tensor."""
    return x.tensor.to_dense() if isinstance(x, CSR) else x.to_dense()
