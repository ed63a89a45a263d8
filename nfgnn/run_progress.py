"""The progress of long work: live on a terminal, plain lines elsewhere, always on standard error."""

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from nfgnn.training.history import History

_LINES_EVERY_SECONDS = 10.0
_REFRESH_SECONDS = 0.1


class RunDisplay:
    """Shows which run of how many is being trained, its epoch, losses and validation accuracy."""

    def __init__(self, label: str, quiet: bool = False) -> None:
        self.label = label
        self.console = Console(stderr=True, quiet=quiet)
        self.live = self.console.is_terminal and not quiet
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.live,
        )
        self._runs: TaskID | None = None
        self._epochs: TaskID | None = None
        self._shown = time.perf_counter()

    def __enter__(self) -> "RunDisplay":
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def runs_started(self, seeds: Sequence[int], done: int, total: int, max_epochs: int) -> None:
        if self._runs is None:
            self._runs = self._bars.add_task(f"{self.label}  runs", total=total, status="")
            self._epochs = self._bars.add_task("", total=max_epochs, status="")
        self._bars.update(self._runs, completed=done)
        assert self._epochs is not None
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
        self._bars.reset(
            self._epochs, total=max_epochs, description=f"  {which}  epochs", status=""
        )

    def epoch(self, history: History) -> None:
        now = time.perf_counter()
        if now - self._shown < (_REFRESH_SECONDS if self.live else _LINES_EVERY_SECONDS):
            return
        self._shown = now
        status = (
            f"loss {history.train_loss[-1]:.3f}  val loss {history.val_loss[-1]:.3f}  "
            f"val acc {100 * history.val_accuracy[-1]:.1f} %"
        )
        if self.live and self._epochs is not None:
            self._bars.update(self._epochs, completed=history.epochs, status=status)
        elif not self.live:
            self.console.print(f"  epoch {history.epochs}  {status}")

    def run_finished(self, seed: int, metrics: Mapping[str, Any]) -> None:
        score = metrics.get("test_accuracy", metrics.get("unobserved_accuracy"))
        test = f"test acc {100 * score:.1f} %  " if score is not None else ""
        self.console.print(
            f"{self.label}  seed {seed}: {test}val acc {100 * metrics['val_accuracy']:.1f} %  "
            f"({metrics['epochs']} epochs, {metrics['seconds']:.1f} s)",
            highlight=False,
        )
        if self._runs is not None:
            self._bars.advance(self._runs)
