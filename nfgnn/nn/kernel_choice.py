"""Whether the GPU kernels of networks compute with a tensor, and in which precision."""

import torch
from torch import Tensor

from nfgnn.spectral import triton_is_available


def is_fused(x: Tensor) -> bool:
    """Return whether the kernels compute with a tensor."""
    return x.is_cuda and x.dtype in (torch.float32, torch.bfloat16) and triton_is_available()


def autocast_dtype(x: Tensor) -> torch.dtype | None:
    """Return the half precision that autocast computes matrix products of x in.

    ``None`` if autocast is off, or leaves x as it is, as it does with float64.
    """
    device = x.device.type
    if x.dtype == torch.float64 or not torch.is_autocast_enabled(device):
        return None
    return torch.get_autocast_dtype(device)
