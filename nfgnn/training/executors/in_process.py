"""Runs one after the other in this process."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from nfgnn.training.execution import Batch, Executor, OnBatchEpoch, Work
from nfgnn.training.run import Failure
from nfgnn.training.trainer import one_thread


class InProcess(Executor):
    """Train one batch after the other.

    Args:
        single_thread: use one thread, also for large graphs, so that a run gives the same numbers
            in this process and in a pool.
    """

    def __init__(self, single_thread: bool = False) -> None:
        self.single_thread = single_thread

    def run(
        self, batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch
    ) -> Iterator[tuple[Batch, list[Any | Failure]]]:
        for batch in batches:
            with one_thread(self.single_thread):
                outcomes = work(batch, partial(on_epoch, batch))
            yield batch, outcomes
