"""A time limit that ends trainings early and keeps what they have learnt."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from nfgnn.training.execution import Batch
from nfgnn.training.trainer import StopTraining


def unknown_seconds(batch: Batch) -> float:
    """The estimate of :class:`TimeLimit` for batches whose time is not known."""
    return 0.0


@dataclass
class TimeLimit:
    """When trainings end, by the clock of :func:`time.monotonic`, which all processes share.

    A training that reaches the limit keeps the weights of its best epoch so far.

    Args:
        end: the time at which trainings end.
        longest: most seconds of one training.
        estimate: expected seconds of a batch. A batch that would not end in time is not started.
    """

    end: float = math.inf
    longest: float = math.inf
    estimate: Callable[[Batch], float] = unknown_seconds

    def may_start(self, batch: Batch) -> bool:
        """Whether a batch that starts now is expected to end in time."""
        if self.end == math.inf:
            return True
        return time.monotonic() + self.estimate(batch) < self.end

    def from_now(self) -> "TimeLimit":
        """Return the limit of a training that starts now."""
        return replace(self, end=min(self.end, time.monotonic() + self.longest))

    def check(self) -> None:
        """End the training if its time is over. Call it after every epoch."""
        if time.monotonic() >= self.end:
            raise StopTraining
