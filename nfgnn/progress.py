"""The progress display of every command: bars on a terminal, plain lines elsewhere.

All output goes to standard error, so that standard output stays free for results.
"""

import math
import re
import time
from types import TracebackType
from typing import Any

from rich import progress as rich_progress
from rich.console import Console
from rich.table import Column
from rich.text import Text

from nfgnn.errors import UserError, escape_controls

_LINE_SECONDS = 10.0  # between two plain lines
_REFRESH_SECONDS = 0.1  # between two updates of a live display
_TIME_SPAN = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


class PlainConsole(Console):
    """A console that prints texts as they are, with control characters escaped.

    Names of graphs, classes and files may look like the markup or the emoji codes of rich, or
    contain the control codes of a terminal.
    """

    def __init__(self, stderr: bool = False, quiet: bool = False) -> None:
        super().__init__(stderr=stderr, quiet=quiet, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(escape_controls(text), **options)


class Progress:
    """Report how far long work is, and how much time is left.

    Work is shown as named stages, one bar each. Commands that train use one stage, whose amount
    is the estimated cost of the runs, because runs differ a thousandfold in cost.

    Args:
        label: name of the main stage.
        quiet: print nothing.
        compact: leave most of a narrow terminal to the text beside the bar, which also has the
            time left.

    Example:
        >>> with Progress("reproduce") as progress:
        ...     progress.start(total=2.0, count=2, unit="runs")
        ...     progress.status("seed 0: epoch 10")
        ...     progress.advance(1.0, "seed 0")
    """

    def __init__(self, label: str = "", quiet: bool = False, compact: bool = False) -> None:
        self.label = label
        self.console = PlainConsole(stderr=True, quiet=quiet)
        self.live = self.console.is_terminal and not quiet
        self.stage_seconds: dict[str, float] = {}
        """Time spent in every stage so far."""
        self._bars = rich_progress.Progress(
            *_columns(compact),
            console=self.console,
            disable=not self.live,
            expand=compact,
            speed_estimate_period=3600,
        )
        self._tasks: dict[str, rich_progress.TaskID] = {}
        self._started = time.perf_counter()
        self._last_stage = self._started
        self._last_line = self._started
        self._last_refresh = 0.0
        self._total = 1.0
        self._done = 0.0
        self._count = 0
        self._total_count = 0
        self._unit = ""

    def __enter__(self) -> "Progress":
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def start(self, total: float, count: int, unit: str = "runs") -> None:
        """Set the amount of work of the main stage, and the number of units it consists of."""
        self._total = max(total, 1e-9)
        self._done = 0.0
        self._count = 0
        self._total_count = count
        self._unit = unit
        self._started = time.perf_counter()
        self._last_line = self._started
        self._update_bar(self.label, 0.0, self._total, status="")

    def advance(self, amount: float, status: str, count: int = 1, plain: bool = True) -> None:
        """Report that ``count`` units, together ``amount`` of the work, are finished.

        Args:
            amount: share of the total.
            status: the units that were finished.
            count: number of units.
            plain: whether to print lines where there is no terminal. Not needed if the caller
                prints a line per unit.
        """
        self._done += amount
        self._count += count
        self._update_bar(self.label, self._done, self._total, status)
        finished = self._count == self._total_count
        if plain and not self.live and (self._line_is_due() or finished):
            progress = f"{self._count}/{self._total_count} {self._unit}"
            self.say(f"{self.label}: {progress}, {self.time_left()} left; last: {status}")

    def status(self, text: str, done: float | None = None) -> None:
        """Show what is being done, a few times a second at most.

        Args:
            text: what is being done.
            done: amount of the work that is done; by default that of the finished units.
        """
        if done is not None:
            self._done = done
        if self.live:
            now = time.perf_counter()
            if now - self._last_refresh >= _REFRESH_SECONDS:
                self._last_refresh = now
                self._update_bar(self.label, self._done, self._total, text)
        elif self._line_is_due():
            self.say(f"  {text}")

    def stage(self, name: str, done: float, total: float) -> None:
        """Report how far a named stage is; a ``total`` of 0 means that it is not known."""
        now = time.perf_counter()
        self.stage_seconds[name] = self.stage_seconds.get(name, 0.0) + now - self._last_stage
        self._last_stage = now
        self._update_bar(name, done, total or None, status="")
        if not self.live and self._line_is_due():
            self.say(f"{name}: {100 * done / total:.0f} %" if total else f"{name}: block {done:g}")

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self.console.print(line, highlight=False, soft_wrap=True)

    def time_left(self) -> str:
        """Return the time left, if the rest takes as long per amount as what is done."""
        elapsed = time.perf_counter() - self._started
        return duration(elapsed * (self._total - self._done) / max(self._done, 1e-9))

    def _update_bar(self, name: str, done: float, total: float | None, status: str) -> None:
        count = f"{self._count}/{self._total_count} {self._unit}" if name == self.label else ""
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=total, count=count, status=status)
        self._bars.update(
            self._tasks[name], total=total, completed=done, count=count, status=status
        )

    def _line_is_due(self) -> bool:
        now = time.perf_counter()
        if now - self._last_line < _LINE_SECONDS:
            return False
        self._last_line = now
        return True


def _columns(compact: bool) -> list[rich_progress.ProgressColumn]:
    description = rich_progress.TextColumn("{task.description}", markup=False)
    if compact:
        # A column with a ratio gets the width that the others leave.
        rest = Column(no_wrap=True, ratio=1)
        status = rich_progress.TextColumn("{task.fields[status]}", markup=False, table_column=rest)
        return [description, rich_progress.BarColumn(bar_width=12), status]
    return [
        description,
        rich_progress.BarColumn(),
        rich_progress.TextColumn("{task.fields[count]}", markup=False),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
        rich_progress.TextColumn("{task.fields[status]}", markup=False),
    ]


def duration(seconds: float) -> str:
    """Format a time span for people: ``"45 s"``, ``"12 min"``, ``"3.2 h"``."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def parse_duration(span: str | float) -> float:
    """Return the seconds of a time span such as ``"30s"``, ``"5m"``, ``"1h30m"`` or ``90``."""
    match = _TIME_SPAN.fullmatch(str(span).replace(" ", "").lower())
    if match is None or not any(match.groups()):
        raise UserError(f"'{span}' is not a valid duration: use a value such as 30s, 5m or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    total = 3600 * hours + 60 * minutes + seconds
    if not 0 < total < math.inf:
        raise UserError(f"'{span}' is not a valid duration: it must be positive")
    return total
