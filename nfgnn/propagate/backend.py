"""Which implementation of the sparse products serves a tensor.

A backend is a module with four functions: ``terms``, ``adjoint``, ``matmul`` and ``matmul_members``.
"""

from functools import cache
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor

from nfgnn.propagate import torch_backend


def backend(x: Tensor) -> ModuleType:
    """Triton for float32 on a GPU, torch for everything else."""
    return _triton() if x.is_cuda and x.dtype == torch.float32 and find_spec("triton") else torch_backend


@cache
def _triton() -> ModuleType:
    from nfgnn.propagate import triton_backend

    return triton_backend
