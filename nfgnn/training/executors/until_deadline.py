"""An executor that stops at a time limit."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from nfgnn.training.execution import Batch, Executor, OnBatchEpoch, Work
from nfgnn.training.history import History
from nfgnn.training.run import Failure


class UntilDeadline(Executor):
    """Train one batch after the other in this process until a time limit.

    What has not finished by then has no result, and a later call trains it. Runs that fail together
    are trained alone, because a batch may need more memory than other processes have left.

    Args:
        seconds: the time limit, from now on.
        max_batch: largest number of runs that are trained as one computation.
    """

    def __init__(self, seconds: float, max_batch: int = 12) -> None:
        self.end = time.monotonic() + seconds
        self.max_batch = max_batch

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.end

    def run(
        self, batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch
    ) -> Iterator[tuple[Batch, list[Any | Failure]]]:
        def check(batch: Batch, history: History) -> None:
            if self.is_over:
                raise _TimeLimitReached
            on_epoch(batch, history)

        waiting = [part for batch in batches for part in _parts(batch, self.max_batch)]
        try:
            while waiting and not self.is_over:
                batch = waiting.pop(0)
                outcomes = work(batch, partial(check, batch))
                if len(batch) > 1 and all(_has_failed(outcome) for outcome in outcomes):
                    waiting = [*_parts(batch, 1), *waiting]
                else:
                    yield batch, outcomes
        except _TimeLimitReached:
            return


class _TimeLimitReached(Exception):
    """Ends a training whose time is over."""


def _parts(batch: Batch, size: int) -> list[Batch]:
    return [batch[start : start + size] for start in range(0, len(batch), size)]


def _has_failed(outcome: Any | Failure) -> bool:
    return isinstance(outcome, Failure) and not outcome.diverged
