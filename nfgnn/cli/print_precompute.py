"""What `nfgnn precompute` shows: the plan before, progress meanwhile, the store afterwards."""

import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from nfgnn.store import Store
from nfgnn.store.plan import Plan

_LINES_EVERY_SECONDS = 10.0
_CUTS = {
    "resident": "the graph in memory, columns in blocks",
    "streamed": "the graph streamed from disk in blocks of rows, columns in blocks",
    "device": "the graph in the memory of the GPU, columns in blocks",
}


def plan_rows(plan: Plan, memory: int) -> list[tuple[str, str]]:
    """The plan as pairs of a name and a value."""
    return [
        (
            "graph",
            f"{plan.num_nodes:,} nodes, at most {plan.num_entries:,} entries, {plan.num_features} features",
        ),
        ("cut", _CUTS[plan.cut]),
        (
            "blocks",
            f"{plan.blocks} of {plan.width} columns, {plan.products} sparse products in all",
        ),
        ("memory", f"{size(plan.memory_bytes)} expected of {size(memory)} allowed"),
        (
            "store",
            f"{plan.num_rows:,} rows of {plan.K + 1} × {plan.num_features} values: {size(plan.store_bytes)}",
        ),
        ("disk", f"{size(plan.disk_bytes)} at the worst moment, {size(plan.free_bytes)} free"),
        ("traffic", f"{size(plan.read_bytes)} read, {size(plan.written_bytes)} written"),
        ("time", f"about {_duration(plan.seconds)}, from a short calibration"),
    ]


def print_plan(plan: Plan, memory: int) -> None:
    table = Table(show_header=False, box=None)
    for row in plan_rows(plan, memory):
        table.add_row(*row)
    Console(stderr=True).print(table, highlight=False)


def store_summary(
    store: Store, plan: Plan, seconds: float, stages: dict[str, float]
) -> dict[str, Any]:
    """The one JSON object of the command."""
    m = store.manifest
    about = {
        "store": str(store.path),
        "dataset": m.dataset,
        "rows": m.num_rows,
        "features": m.num_features,
        "K": m.K,
    }
    about |= {"basis": m.basis, "dtype": m.dtype, "scaling": m.features}
    return about | {"seconds": seconds, "stages": stages, "plan": plan.summary()}


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class PrecomputeDisplay:
    """A bar per stage on a terminal, a line every ten seconds elsewhere; always on standard error."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self.live = self.console.is_terminal
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._bars = Progress(*columns, console=self.console, disable=not self.live)
        self._tasks: dict[str, TaskID] = {}
        self._shown = self._last = time.perf_counter()
        self.stages: dict[str, float] = {}
        """Seconds spent in every stage so far."""

    def __enter__(self) -> "PrecomputeDisplay":
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def report(self, what: str, done: int, total: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total or None)
        self._bars.update(self._tasks[what], completed=done)
        now = time.perf_counter()
        self.stages[what] = self.stages.get(what, 0.0) + now - self._last
        self._last = now
        if not self.live and now - self._shown > _LINES_EVERY_SECONDS:
            self._shown = now
            self.say(f"{what}: {f'{100 * done / total:.0f} %' if total else f'block {done}'}")

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False)
