"""Runs that several processes train together, started by ``torchrun`` or Ray Train."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch.distributed as dist

from nfgnn.errors import UserError
from nfgnn.nn import Scalable, find_model
from nfgnn.training.device import resolve_device
from nfgnn.training.distributed import ProcessGroup
from nfgnn.training.execution import Batch, Executor, OnBatchEpoch, Work
from nfgnn.training.executors.in_process import InProcess
from nfgnn.training.run import Failure, RunSpec

_END = -1  # broadcast instead of a seed, which is never negative


class Torchrun(Executor):
    """Train runs in all processes of the group. The first process leads, the others follow.

    The first process calls :func:`~nfgnn.training.execute` with this executor, all others
    call :func:`follow` with the same runs.
    """

    def run(
        self, batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch
    ) -> Iterator[tuple[Batch, list[Any | Failure]]]:
        group = ProcessGroup.current()
        device = resolve_device(work.device)
        try:
            for batch in batches:
                group.broadcast(batch[0].seed, device)
                yield from InProcess().run([batch], work, on_epoch)
            group.broadcast(_END, device)
        except RuntimeError as error:
            raise _lost_process(error, group) from None


def follow(specs: Sequence[RunSpec], device: str, work: Work) -> None:
    """Join the runs of the first process, in every other process, until the first one ends them."""
    group = ProcessGroup.current()
    by_seed = {spec.seed: spec for spec in specs}
    try:
        while True:
            # The first process broadcasts; the argument of the others is ignored.
            seed = group.broadcast(_END, resolve_device(device))
            if seed == _END:
                return
            spec = by_seed[seed]
            checkpoint = work.results.checkpoint(spec)
            spec.classifier(device).fit(spec.split(), checkpoint=checkpoint)
    except RuntimeError as error:
        raise _lost_process(error, group) from None


def check_distributable(specs: Sequence[RunSpec]) -> None:
    """Refuse models that several processes cannot train together."""
    for spec in specs:
        if not issubclass(find_model(spec.config.model).model, Scalable):
            raise UserError(
                f"{spec.config.model} can only be trained by one process: use a Scalable… model, "
                "or run without torchrun"
            )


def _lost_process(error: RuntimeError, group: ProcessGroup) -> Exception:
    """Translate the error of a lost connection; other errors are returned as they are."""
    # Gloo reports a lost connection by a RuntimeError without a type of its own.
    lost = isinstance(error, dist.DistBackendError) or "gloo" in str(error)
    if group.size == 1 or not lost:
        return error
    return UserError(
        f"another process of the {group.size} has ended, so this one ends too: see the output of "
        "that process; --resume continues from the last checkpoint, and `torchrun "
        "--max-restarts N` does so by itself"
    )
