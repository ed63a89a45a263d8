"""Which device a training runs on."""

import os

import torch

from nfgnn.errors import UserError


def resolve_device(device: str) -> torch.device:
    """The device of this name; ``"auto"`` is a GPU where there is one."""
    cuda = torch.cuda.is_available()
    if device == "auto":
        return torch.device("cuda" if cuda else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError:
        raise UserError(f"device '{device}' is not known: use auto, cpu or cuda") from None
    if resolved.type == "cuda" and not cuda:
        raise UserError(
            f"device '{device}' is not there: this machine or this build of torch has no CUDA GPU"
        )
    return resolved


def device_name(device: str) -> str:
    """What a run says it ran on: ``cpu``, or the name of the GPU."""
    resolved = resolve_device(device)
    return torch.cuda.get_device_name(resolved) if resolved.type == "cuda" else resolved.type


def usable_cores() -> int:
    """How many cores of the CPU this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
