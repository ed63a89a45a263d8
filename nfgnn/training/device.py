"""The device and the machine that a training runs on."""

import os
import platform
from functools import lru_cache
from pathlib import Path

import torch

from nfgnn.errors import UserError


def resolve_device(device: str) -> torch.device:
    """Return the device of this name; ``"auto"`` is a GPU if one is available."""
    cuda = torch.cuda.is_available()
    if device == "auto":
        return torch.device("cuda" if cuda else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError:
        raise UserError(f"unknown device '{device}': use auto, cpu or cuda") from None
    if resolved.type == "cuda" and not cuda:
        raise UserError(
            f"device '{device}' is not available: this machine or this build of torch has no CUDA "
            "GPU"
        )
    if resolved.type == "cuda" and (resolved.index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"device '{device}' is not available: this machine has {torch.cuda.device_count()} "
            "CUDA GPUs, counted from 0"
        )
    if resolved.type not in ("cpu", "cuda"):
        _check_other_device(resolved)
    return resolved


def _check_other_device(device: torch.device) -> None:
    """Refuse a device that this build of torch names but cannot compute on."""
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, NotImplementedError, AssertionError):
        raise UserError(
            f"device '{device}' is not available on this machine: use auto, cpu or cuda"
        ) from None


def device_name(device: str) -> str:
    """Return the name of a device as records hold it: ``cpu``, or the name of the GPU."""
    resolved = resolve_device(device)
    if resolved.type == "cuda":
        return torch.cuda.get_device_name(resolved)
    return resolved.type


def usable_cores() -> int:
    """Return the number of CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@lru_cache
def machine_name() -> str:
    """Return the processor, the number of usable cores, and the version of torch."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                processor = line.split(":", 1)[1].strip()
                break
    version = torch.__version__.partition("+")[0]
    return f"{processor}, {usable_cores()} cores, torch {version}"
