"""Runs one after the other in this process."""

from collections.abc import Iterator, Sequence
from typing import Any

from nfgnn.training.execution import Batch, Executor, OnBatchEpoch, Work
from nfgnn.training.executors.time_limit import TimeLimit
from nfgnn.training.history import History, OnEpoch
from nfgnn.training.run import Failure
from nfgnn.training.trainer import one_thread


class InProcess(Executor):
    """Train one batch after the other.

    Args:
        single_thread: use one thread, also for large graphs, so that a run gives the same numbers
            in this process and in a pool.
        limit: when trainings end early, and which batches are not started; by default all of them
            are trained to their end.
    """

    def __init__(self, single_thread: bool = False, limit: TimeLimit | None = None) -> None:
        self.single_thread = single_thread
        self.limit = limit or TimeLimit()

    def run(
        self, batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch
    ) -> Iterator[tuple[Batch, list[Any | Failure]]]:
        for batch in batches:
            if not self.limit.may_start(batch):
                continue
            with one_thread(self.single_thread):
                outcomes = work(batch, _after_epoch(on_epoch, batch, self.limit.from_now()))
            yield batch, outcomes


def _after_epoch(on_epoch: OnBatchEpoch, batch: Batch, limit: TimeLimit) -> OnEpoch:
    def after_epoch(history: History) -> None:
        on_epoch(batch, history)
        limit.check()

    return after_epoch
