"""What a search may spend: wall-clock time, or a number of runs.

A number of runs is the same amount of work on every machine, so it gives the same results again. A
time limit counts from the start of the command and includes what follows the search: the ensemble,
the files and the report. The time that an interrupted search had used counts too.
"""

import json
import math
import time
from dataclasses import dataclass, field
from pathlib import Path

from nfgnn.errors import UserError
from nfgnn.files import atomic_file

_RESERVED_SHARE = 0.04
_RESERVED_LOADING = 0.55
_LEAST_RESERVE = 5.0  # the figure of the run takes two of them
_LARGEST_RESERVE = 20.0
_LARGEST_SHARE = 0.25
_PREDICTIONS = 8
"""Number of models that predict all nodes at the end: the members of the ensemble, mostly."""


@dataclass
class Budget:
    """Time or runs that are left.

    Args:
        seconds: time limit, or ``None``.
        runs: number of runs, or ``None``. Exactly one of the two is given.
        started: when the command started, by the clock of :func:`time.monotonic`.
        clock: file that keeps the time used, for an interrupted search.
    """

    seconds: float | None
    runs: int | None
    started: float = field(default_factory=time.monotonic)
    clock: Path | None = None
    runs_planned: int = 0

    def __post_init__(self) -> None:
        if self.seconds is None and self.runs is None:
            raise UserError("pass a time limit or a number of runs")
        if self.seconds is not None and self.runs is not None:
            raise UserError("pass either a time limit or a number of runs, not both")
        if self.seconds is not None and not 1 <= self.seconds < math.inf:
            raise UserError(f"a time limit of {self.seconds:g} s is too short: use at least 1 s")
        if self.runs is not None and self.runs < 1:
            raise UserError(f"a search of {self.runs} runs is too short: use at least 1 run")
        self.seconds_before = 0.0
        """Time until the search started, which loading the graph took."""
        self.seconds_to_first = 0.0
        """Time until the first model was trained; 0 as long as there is none."""
        self.prediction_seconds = 0.0
        """Longest time that a model took to predict all nodes."""
        if self.clock is not None and self.clock.is_file():
            times = json.loads(self.clock.read_text(encoding="utf-8"))
            self.started -= float(times["seconds"])
            self.seconds_before = float(times["seconds_before"])
            self.seconds_to_first = float(times["seconds_to_first"])
        else:
            self.seconds_before = self.elapsed()

    @property
    def total(self) -> float:
        """Seconds for trainings, or number of runs."""
        return self.training_seconds if self.runs is None else float(self.runs)

    @property
    def is_timed(self) -> bool:
        """Whether the budget is time."""
        return self.seconds is not None

    def elapsed(self) -> float:
        """Return the seconds since the start, without those between interruption and resumption."""
        return time.monotonic() - self.started

    def save_clock(self) -> None:
        """Write the time used to the file of the clock."""
        if self.clock is None:
            return
        times = {
            "seconds": self.elapsed(),
            "seconds_before": self.seconds_before,
            "seconds_to_first": self.seconds_to_first,
        }
        with atomic_file(self.clock, sync=False) as partial:
            partial.write_text(json.dumps(times), encoding="utf-8")

    @property
    def training_seconds(self) -> float:
        """Time for trainings: from the start of the search to the reserve for what follows."""
        if self.seconds is None:
            return math.inf
        reserve = max(
            _LEAST_RESERVE,
            min(_RESERVED_SHARE * self.seconds, _LARGEST_RESERVE),
            # What takes long to load on a busy machine also takes long to finish.
            _RESERVED_LOADING * self.seconds_before,
            _PREDICTIONS * self.prediction_seconds,
        )
        reserve = min(reserve, _LARGEST_SHARE * self.seconds)
        return max(self.seconds - reserve - self.seconds_before, 0.0)

    def end(self, share: float = 1.0) -> float:
        """Return when a share of the time for trainings is used, by :func:`time.monotonic`."""
        return self.started + self.seconds_before + share * self.training_seconds

    def seconds_left(self, share: float = 1.0) -> float:
        """Return the seconds until :meth:`end`."""
        return max(0.0, self.end(share) - time.monotonic())

    @property
    def runs_left(self) -> float:
        """Number of runs that may still be planned."""
        if self.runs is None:
            return math.inf
        return self.runs - self.runs_planned
