"""Process groups: several processes that train one model, started by ``torchrun`` or Ray Train.

Processes that train different runs independently are :mod:`nfgnn.training.executors`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from nfgnn.errors import UserError


@dataclass(frozen=True)
class ProcessGroup:
    """The rank of this process and the number of processes. A single process is rank 0 of 1."""

    rank: int = 0
    size: int = 1
    is_initialized: bool = False
    """Whether torch.distributed is running, which is possible with a single process too."""

    @classmethod
    def current(cls) -> "ProcessGroup":
        """Return the group that torch.distributed has initialised."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size(), is_initialized=True)
        return cls()

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes files and prints."""
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place."""
        if self.is_initialized:
            dist.all_reduce(values)
        return values

    def broadcast(self, value: int, device: torch.device) -> int:
        """Return the value of the first process, in all processes."""
        if not self.is_initialized:
            return value
        shared = torch.tensor([value], device=device)
        dist.broadcast(shared, 0)
        return int(shared.item())

    def barrier(self) -> None:
        """Wait until all processes have reached this point."""
        if self.is_initialized:
            dist.barrier()


def launched_by_torchrun() -> bool:
    """Whether ``torchrun`` has started this process together with others."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    return several and "TORCHELASTIC_RUN_ID" in os.environ


def restarted_by_torchrun() -> bool:
    """Whether ``torchrun --max-restarts`` has restarted the processes after one of them died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


@contextmanager
def process_group(device: str) -> Iterator[str]:
    """Join the process group of ``torchrun`` and yield the device of this process.

    Every process of a machine takes its own GPU; without GPUs the processes use gloo. A process
    that was not started by ``torchrun`` keeps its device.
    """
    if not launched_by_torchrun():
        yield device
        return
    cuda = torch.cuda.is_available() and not device.startswith("cpu")
    local_rank = int(os.environ["LOCAL_RANK"])
    if cuda and local_rank >= torch.cuda.device_count():
        raise UserError(
            f"process {local_rank} of this machine has no GPU of its own: there are "
            f"{torch.cuda.device_count()}; start fewer processes with --nproc-per-node, or train "
            "on the CPU with --device cpu"
        )
    if cuda:
        torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl" if cuda else "gloo")
    try:
        yield f"cuda:{local_rank}" if cuda else "cpu"
    finally:
        dist.destroy_process_group()
