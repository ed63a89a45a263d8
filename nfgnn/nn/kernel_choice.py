"""Whether the GPU kernels of networks compute with a tensor."""

import torch
from torch import Tensor

from nfgnn.spectral import triton_is_available


def is_fused(x: Tensor) -> bool:
    """Return whether the kernels compute with a tensor."""
    return x.is_cuda and x.dtype in (torch.float32, torch.bfloat16) and triton_is_available()
