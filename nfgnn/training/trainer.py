"""The epoch loop.

:func:`train` runs epochs until every run has stopped. A :class:`Trainer` computes one epoch: on a
whole graph (:mod:`~nfgnn.training.whole_graph`), on its parts
(:mod:`~nfgnn.training.partition_batches`), of many runs as one computation
(:mod:`~nfgnn.training.batched`), or on mini-batches of rows (:mod:`~nfgnn.training.minibatch`).
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from nfgnn.training.history import History, OnEpoch

_SMALL = 2e8  # multiplications per step, below which a second thread costs more than it saves


class StopTraining(Exception):
    """Raised by a callback after an epoch: the training ends and keeps its best weights."""


class Trainer(ABC):
    """Trains one run or several, epoch by epoch. :func:`train` decides how many epochs."""

    check_interval: int = 1
    """Number of epochs between two calls of :meth:`check`, which waits for the device."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.seconds_before = 0.0
        """Time that an interrupted training had spent before it was resumed."""

    @property
    def epochs_done(self) -> int:
        """Number of epochs that an interrupted training had finished."""
        return 0

    @abstractmethod
    def run_epoch(self) -> None:
        """Train for one epoch and evaluate the validation nodes."""

    @abstractmethod
    def check(self) -> bool:
        """Return whether any run is still training. May free the memory of stopped runs."""

    @abstractmethod
    def histories(self) -> list[History]:
        """Return the learning curves so far, one per run."""

    @abstractmethod
    def finish(self) -> list[History]:
        """Complete the histories and restore the best weights of every run."""

    def seconds(self) -> float:
        """Return the time spent so far, shared evenly among the runs."""
        elapsed = time.perf_counter() - self._started
        return self.seconds_before + elapsed / len(self.histories())


def train(trainer: Trainer, max_epochs: int, on_epoch: OnEpoch | None = None) -> list[History]:
    """Run epochs until all runs have stopped or ``max_epochs`` are done.

    Args:
        trainer: computes an epoch.
        max_epochs: largest number of epochs.
        on_epoch: called every ``check_interval`` epochs, with the history of the longest run.
            It may raise :class:`StopTraining`.

    Returns:
        The history of every run. The models hold their weights of least validation loss.
    """
    epoch = trainer.epochs_done
    # A resumed training may have stopped already.
    running = trainer.check()
    while running and epoch < max_epochs:
        trainer.run_epoch()
        epoch += 1
        if epoch % trainer.check_interval == 0:
            if on_epoch is not None:
                longest = max(trainer.histories(), key=lambda history: history.epochs)
                if longest.epochs and _ends_training(on_epoch, longest):
                    break
            running = trainer.check()
    histories = trainer.finish()
    seconds = trainer.seconds()
    for history in histories:
        history.seconds = seconds
    return histories


def _ends_training(on_epoch: OnEpoch, history: History) -> bool:
    try:
        on_epoch(history)
    except StopTraining:
        return True
    return False


@contextmanager
def suitable_threads(values: int, model: nn.Module, device: torch.device) -> Iterator[None]:
    """Use one thread for small work on a CPU, where more threads would wait for each other.

    Args:
        values: number of values that a step reads.
        model: its widest layer determines the work per value.
        device: the number of threads only changes on a CPU.
    """
    if device.type == "cuda" or not is_small(values, model):
        yield
        return
    with one_thread():
        yield


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """Let torch use a single thread inside the block."""
    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def is_small(values: int, model: nn.Module) -> bool:
    """Whether one thread trains a model fastest on so many values per step."""
    widest = max((p.shape[0] for p in model.parameters() if p.dim() == 2), default=1)
    return values * widest < _SMALL


def stored_values(x: Tensor) -> int:
    """Number of values that a dense or sparse matrix stores."""
    if x.layout == torch.strided:
        return x.numel()
    return x.values().numel()
