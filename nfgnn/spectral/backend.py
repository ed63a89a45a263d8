"""Which implementation of the sparse products serves a tensor.

A backend is a module with five functions: ``terms``, ``each_term``, ``adjoint``, ``matmul`` and ``matmul_members``.
"""

from functools import cache
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor

from nfgnn.spectral import torch_backend


def backend(x: Tensor) -> ModuleType:
    """Triton on a GPU, torch elsewhere."""
    if not (x.is_cuda and x.dtype in (torch.float32, torch.float64) and _has_triton()):
        return torch_backend
    from nfgnn.kernels import recurrence as triton_backend

    return triton_backend


def serves_triton(x: Tensor) -> bool:
    """Whether the kernels around the products run on this tensor: float32 on a GPU, and Triton installed."""
    return x.is_cuda and x.dtype == torch.float32 and _has_triton()


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
