"""Several processes that train one model: who this one is, and how they talk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from nfgnn.errors import UserError


@dataclass(frozen=True)
class Processes:
    """This process among those that train together; alone it is process 0 of 1."""

    rank: int = 0
    count: int = 1

    @classmethod
    def current(cls) -> "Processes":
        """As torch.distributed has it."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def first(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes, the same in each."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def agree(self, value: int, device: torch.device) -> int:
        """The first process' value, in all of them."""
        if self.count == 1:
            return value
        shared = torch.tensor([value], device=device)
        dist.broadcast(shared, 0)
        return int(shared.item())

    def wait(self) -> None:
        """Until all processes have come here."""
        if self.count > 1:
            dist.barrier()


def launched_by_torchrun() -> bool:
    """Whether this process is one of several that ``torchrun`` has started."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "TORCHELASTIC_RUN_ID" in os.environ


def restarted() -> bool:
    """Whether ``torchrun --max-restarts`` has started the processes again after one of them died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


@contextmanager
def process_group(device: str) -> Iterator[str]:
    """The group of processes that ``torchrun`` has started, and this one's device; alone, just the device.

    Every process of a machine takes its own GPU; without GPUs they talk by gloo.
    """
    if not launched_by_torchrun():
        yield device
        return
    cuda = torch.cuda.is_available() and not device.startswith("cpu")
    local = int(os.environ["LOCAL_RANK"])
    if cuda and local >= torch.cuda.device_count():
        raise UserError(
            f"process {local} of this machine has no GPU of its own: there are {torch.cuda.device_count()}; "
            "start fewer processes with --nproc-per-node, or train on the CPU with --device cpu"
        )
    if cuda:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if cuda else "gloo")
    try:
        yield f"cuda:{local}" if cuda else "cpu"
    finally:
        dist.destroy_process_group()
