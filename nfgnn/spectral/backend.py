"""Choose the implementation of sparse products and recurrences for a tensor.

A backend is a module with the functions ``terms``, ``each_term``, ``adjoint``, ``matmul`` and
``batched_matmul``.
"""

from functools import cache
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor

from nfgnn.spectral import torch_backend

_HALF_PRECISION = (torch.bfloat16, torch.float16)
_TRITON_TYPES = (torch.float32, torch.float64, torch.bfloat16)


def backend(x: Tensor) -> ModuleType:
    """Return the Triton kernels for tensors on a GPU, and torch for all others."""
    if not (x.is_cuda and x.dtype in _TRITON_TYPES and triton_is_available()):
        return torch_backend
    from nfgnn.kernels import recurrence

    return recurrence


def triton_supports(x: Tensor) -> bool:
    """Return whether all Triton kernels accept a tensor: float32 on a GPU with Triton installed.

    The kernels of :func:`backend` also take float64.
    """
    return x.is_cuda and x.dtype == torch.float32 and triton_is_available()


def at_least_float32(x: Tensor) -> Tensor:
    """Return a signal in half precision as float32, because recurrences need its digits."""
    return x.float() if x.dtype in _HALF_PRECISION else x


def sum_precision(x: Tensor) -> torch.dtype:
    """Return the precision in which sums over neighbours are taken: that of x, or float32."""
    return torch.float32 if x.dtype in _HALF_PRECISION else x.dtype


@cache
def triton_is_available() -> bool:
    """Return whether Triton is installed."""
    return find_spec("triton") is not None
