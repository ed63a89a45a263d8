"""How far long work is and how much time is left: live on a terminal, plain lines elsewhere, on standard error."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from nfgnn.training.history import History

_LINES_EVERY_SECONDS = 10.0


class WorkDisplay:
    """Shows finished runs of how many, the time left, and what was last finished.

    Runs differ a thousandfold in cost, so the bar goes by cost and not by number.
    """

    def __init__(self, label: str, quiet: bool = False) -> None:
        self.console = Console(stderr=True, quiet=quiet)
        self.live = self.console.is_terminal and not quiet
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[runs]} runs"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[status]}"),
            console=self.console,
            disable=not self.live,
            speed_estimate_period=3600,
        )
        self._task = self._bar.add_task(label, total=None, runs="0", status="")
        self.label, self.done, self.runs = label, 0, 0
        self.cost_done, self.cost = 0.0, 1.0
        self.begin = self._shown = self._told = time.perf_counter()

    def __enter__(self) -> "WorkDisplay":
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def start(self, costs: Sequence[float], runs: Sequence[int]) -> None:
        """What there is to do."""
        self.done, self.runs, self.cost_done, self.cost = 0, sum(runs), 0.0, max(sum(costs), 1.0)
        self.begin = self._shown = time.perf_counter()
        self._bar.update(self._task, total=self.cost, completed=0, runs=f"0/{self.runs}")
        self.say(
            f"{self.label}: {self.runs} runs to make"
            if self.runs
            else f"{self.label}: nothing to run"
        )

    def advance(self, cost: float, runs: int, status: str) -> None:
        """So much was finished."""
        self.done += runs
        self.cost_done += cost
        self._bar.update(
            self._task, completed=self.cost_done, runs=f"{self.done}/{self.runs}", status=status
        )
        now = time.perf_counter()
        if not self.live and (now - self._shown > _LINES_EVERY_SECONDS or self.done == self.runs):
            self._shown = self._told = now
            self.say(
                f"{self.label}: {self.done}/{self.runs} runs, {self.left(now)} left; last: {status}"
            )

    def following(self, label: str) -> Callable[[History], None]:
        """What a training tells its epochs to."""

        def epoch(history: History) -> None:
            now = time.perf_counter()
            if now - self._told < (0.1 if self.live else _LINES_EVERY_SECONDS):
                return
            self._told = now
            status = f"{label}: epoch {history.epochs}, validation accuracy {100 * history.val_accuracy[-1]:.1f} %"
            if self.live:
                self._bar.update(self._task, status=status)
            else:
                self.say(f"  {status}")

        return epoch

    def left(self, now: float) -> str:
        """The time left, if the rest goes as fast as what is done."""
        seconds = (now - self.begin) * (self.cost - self.cost_done) / max(self.cost_done, 1e-9)
        minutes, hours = seconds / 60, seconds / 3600
        return (
            f"{hours:.1f} h"
            if hours >= 2
            else f"{minutes:.0f} min"
            if minutes >= 2
            else f"{seconds:.0f} s"
        )

    def say(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)
