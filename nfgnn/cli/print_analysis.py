"""An analysis on the terminal: how far it is, and what it found."""

import time
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_LINES_EVERY_SECONDS = 10.0


class StepDisplay:
    """Parts of the work with their progress, on standard error: bars on a terminal, a line now and then elsewhere."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:.0f} %"),
        )
        self._bars = Progress(
            *columns,
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._shown = time.perf_counter()

    def __enter__(self) -> "StepDisplay":
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def told(self, part: str, step: int, steps: int) -> None:
        """The part called ``part`` has done ``step`` of ``steps``."""
        if part not in self._tasks:
            self._tasks[part] = self._bars.add_task(part, total=steps)
        self._bars.update(self._tasks[part], completed=step)
        now = time.perf_counter()
        if not self.console.is_terminal and now - self._shown > _LINES_EVERY_SECONDS:
            self._shown = now
            self.console.print(f"{part}: {100 * step / steps:.0f} %", highlight=False)


def print_analysis(card: dict[str, Any], page: Path) -> None:
    """The findings in words, and where the page is."""
    console, said = Console(), card["words"]
    console.print(
        f"{card['name']}: {card['nodes']:,} nodes, {card['edges']:,} edges",
        style="bold",
        markup=False,
    )
    for sentence in (
        said["summary"],
        *(f"· {reason}" for reason in said["reasons"]),
        said["advice"],
    ):
        console.print(sentence, highlight=False, markup=False)
    console.print(f"page: {page}", highlight=False, markup=False)
