"""Search and train cells of the table `modern` on one device, without the command line of nfgnn.

    python benchmarks/modern_device.py runs/modern minesweeper:NFNet,GCN tolokers:residual \
        --draws 18 --time-limit 540 --device cuda --processes 8 --start-from results

A cell is searched and its winner trained for the table before the process takes the next cell. In
place of a model, `residual` stands for the five residual networks, `others` for the other models
and `all` for both. Without cells, those of ``WORK_ORDER`` are trained in this order.

``--start-from`` takes up the recorded runs of a folder, so that they are not repeated. A call that
reaches its time limit is resumed by the same call; more draws may be asked for later. In the last
part of its time, a call selects among the draws that have finished, so that cells get their runs of
the table; ``--to-be-continued`` leaves that to the next call. Several
processes and calls may share a device and the folder. The folder then holds ``records.sqlite`` and
``records.parquet``. On another machine one of them is enough to resume.

    python benchmarks/modern_device.py runs/modern --draws 18 --collect results

adds the runs of the folder to the records in ``results/`` and writes the winners to the presets.
"""

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from nfgnn.errors import UserError
from nfgnn.paper.search.modern import (
    REPORT_SEEDS,
    ModernSearch,
    run_modern_search,
    run_modern_table,
)
from nfgnn.paper.search.modern_files import SEARCH_RECORDS, collect_modern
from nfgnn.paper.table_registry import TABLES
from nfgnn.progress import Progress
from nfgnn.training import Records, export_records, open_records

MODELS = [row.model for row in TABLES["modern"].rows]
RESIDUAL = ["NFNet", "ResidualGCN", "ResidualGATSep", "ResidualSAGE", "ResidualGAT"]
GROUPS = {
    "residual": RESIDUAL,
    "others": [model for model in MODELS if model not in RESIDUAL],
    "all": MODELS,
}
WORK_ORDER = [
    "chameleon-filtered:residual",
    "squirrel-filtered:residual",
    "tolokers:NFNet,ResidualGCN,ResidualGATSep,ResidualSAGE",
    "minesweeper:NFNet,ResidualGATSep,ResidualSAGE,ResidualGCN",
    "pubmed:residual",
    "computers:residual",
    "pubmed:others",
    "computers:others",
    "tolokers:ResidualGAT",
    "minesweeper:ResidualGAT",
    "chameleon-filtered:others",
    "squirrel-filtered:others",
    "tolokers:others",
    "minesweeper:others",
]
SEARCH_SHARE = 0.7  # of the time that is left; the runs of the table take the rest
SHORTEST_CELL = 20  # seconds; a cell is not started with less time
GRACE = 60  # seconds that a process may need to stop


def main() -> None:
    options = parse_arguments()
    settings = dict(map(parse_setting, options.set))
    try:
        if options.collect is not None:
            print("written:", *collect(options, settings))
        else:
            train(options, settings)
    except UserError as error:
        sys.exit(f"modern_device: {error}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Search and train cells of the table `modern`.")
    parser.add_argument("folder", type=Path, help="Folder of the records.")
    parser.add_argument(
        "cells",
        nargs="*",
        metavar="GRAPH:MODELS",
        help="Cells, in this order (default: the models on six graphs).",
    )
    parser.add_argument("--draws", type=int, default=18, help="Number of draws per cell.")
    parser.add_argument(
        "--finalists",
        type=int,
        help="Draws trained with more patience (default: 4 on small graphs, 2 on large ones).",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda.")
    parser.add_argument("--processes", type=int, default=1, help="Cells trained at the same time.")
    parser.add_argument("--time-limit", type=float, help="Seconds for everything together.")
    parser.add_argument(
        "--to-be-continued",
        action="store_true",
        help="Another call follows: do not cut a search short to train the winner in time.",
    )
    parser.add_argument(
        "--max-batch", type=int, default=12, help="Runs trained as one computation at most."
    )
    parser.add_argument("--root", type=Path, help="Folder with raw datasets.")
    parser.add_argument(
        "--start-from",
        type=Path,
        metavar="RESULTS",
        help="Folder with recorded runs of the search and the table, which are not repeated.",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="A setting of all draws, such as precision=float32 (default: precision=auto).",
    )
    parser.add_argument(
        "--no-table", action="store_true", help="Only search; do not train the winners."
    )
    parser.add_argument(
        "--collect",
        type=Path,
        metavar="RESULTS",
        help="Train nothing: add the runs to the records of this folder and write the presets.",
    )
    return parser.parse_args()


def parse_setting(text: str) -> tuple[str, Any]:
    """Return name and value; whole and decimal numbers become numbers."""
    name, _, value = text.partition("=")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def cells_of(texts: list[str]) -> list[tuple[str, str]]:
    """Return graph and model of the cells, each once."""
    cells: dict[tuple[str, str], None] = {}
    for text in texts or WORK_ORDER:
        graph, colon, models = text.rpartition(":")
        if not colon:
            raise UserError(f"{text!r} is not GRAPH:MODELS, such as minesweeper:GCN,NFNet")
        for model in models.split(","):
            for name in GROUPS.get(model, [model]):
                cells[graph, name] = None
    return list(cells)


@dataclass(frozen=True)
class Job:
    """What a process needs to train cells."""

    folder: Path
    draws: int
    finalists: int | None
    device: str
    max_batch: int
    root: Path | None
    settings: dict[str, Any]
    has_table: bool
    cut_short: bool
    end: float | None
    """On the monotonic clock, which all processes share."""

    def seconds_left(self) -> float | None:
        return None if self.end is None else max(0.0, self.end - time.monotonic())

    def train(self, graph: str, model: str, progress: Progress) -> str:
        """Search a cell and train its winner; return a row of the table that is printed last."""
        started = time.monotonic()
        with Records(self.folder / "records.sqlite") as records:
            cell = ([graph], [model], self.draws, self.device, records)
            common: dict[str, Any] = {
                "settings": self.settings,
                "max_batch": self.max_batch,
                "root": self.root,
                "progress": progress,
            }
            left = self.seconds_left()
            search_limit = left
            if left is not None and self.has_table and self.cut_short:
                search_limit = SEARCH_SHARE * left
            lines = run_modern_search(
                *cell, search_limit, finalists=self.finalists, cut_short=self.cut_short, **common
            )
            if self.has_table:
                lines += run_modern_table(*cell, self.seconds_left(), **common)
            print("\n".join(lines), flush=True)
            row = self._row(graph, model, records)
        return f"{row} {time.monotonic() - started:7.0f}"

    def _row(self, graph: str, model: str, records: Records) -> str:
        search = ModernSearch([graph], [model], self.draws, records, self.settings, self.root)
        (cell,) = search.cells()
        winner = search.winner(cell)
        if winner is None:
            return table_row(graph, model)
        scores = [f"{winner.val_mean:.2f}", f"{winner.tried}", f"{len(winner.runs)}"]
        runs = search.runs(cell, winner.candidate.final_config, REPORT_SEEDS)
        metric = cell.metric.replace("val_", "test_", 1)
        test = "-"
        if runs:
            test = f"{100 * sum(run.metrics[metric] for run in runs) / len(runs):.2f}"
        return table_row(graph, model, *scores, test)


def table_row(
    graph: str, model: str, val: str = "-", draws: str = "-", splits: str = "-", test: str = "-"
) -> str:
    return f"{graph:20} {model:15} {draws:>5} {splits:>6} {val:>10} {test:>7}"


def train(options: argparse.Namespace, settings: dict[str, Any]) -> None:
    """Search every cell, then train its winner, until the time limit."""
    end = None
    if options.time_limit is not None:
        end = time.monotonic() + options.time_limit
    cells = cells_of(options.cells)
    with open_records(options.folder / "records.sqlite") as records:
        if options.start_from is not None:
            take_up(records, options.start_from, {graph for graph, _ in cells})
    job = Job(
        folder=options.folder,
        draws=options.draws,
        finalists=options.finalists,
        device=options.device,
        max_batch=options.max_batch,
        root=options.root,
        settings=settings,
        has_table=not options.no_table,
        cut_short=not options.to_be_continued,
        end=end,
    )
    queue = Queue(job, cells)
    if options.processes == 1:
        progress = Progress("modern")
        queue.work(lambda graph, model: job.train(graph, model, progress))
    else:
        threads = [Thread(target=queue.work_in_process) for _ in range(options.processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    queue.export()
    print(table_row("graph", "model", "validation", "draws", "splits", "test"), "seconds")
    for row in sorted(queue.rows):
        print(row)
    print(f"not started: {len(queue.cells)} cells", flush=True)


def take_up(records: Records, results: Path, graphs: set[str]) -> None:
    """Add the recorded runs of the search and the table on these graphs."""
    with open_records(results / f"{SEARCH_RECORDS}.sqlite") as searched:
        records.add(run for run in searched.all() if run.dataset in graphs)
    with open_records(results / "records.sqlite") as reported:
        runs = [run for run in reported.all() if run.dataset in graphs]
    # The other tables select epochs by the validation loss.
    records.add(run for run in runs if run.config.get("select") == "metric")


class Queue:
    """The cells that no process has taken yet, and the rows of those that are trained."""

    def __init__(self, job: Job, cells: list[tuple[str, str]]) -> None:
        self.job = job
        self.cells = deque(cells)
        self.rows: list[str] = []
        self._lock = Lock()

    def work(self, train_cell: Callable[[str, str], str]) -> None:
        """Train cells until the queue is empty or the time is over."""
        while self._has_time():
            with self._lock:
                if not self.cells:
                    return
                graph, model = self.cells.popleft()
            row = train_cell(graph, model)
            with self._lock:
                self.rows.append(row)
                self.export()

    def _has_time(self) -> bool:
        left = self.job.seconds_left()
        return left is None or left > SHORTEST_CELL

    def work_in_process(self) -> None:
        """Train cells in another process, and in a new one after a process has failed."""
        worker: Worker | None = None

        def train_cell(graph: str, model: str) -> str:
            nonlocal worker
            worker = worker or Worker(self.job)
            row = worker.train(graph, model)
            if row is None:
                worker.process.terminate()
                worker = None
                return f"{table_row(graph, model)}  failed"
            return row

        self.work(train_cell)
        if worker is not None:
            worker.process.terminate()

    def export(self) -> None:
        with Records(self.job.folder / "records.sqlite") as records:
            export_records(records, self.job.folder / "records.parquet")


class Worker:
    """A process that trains one cell after the other."""

    def __init__(self, job: Job) -> None:
        self.job = job
        context = get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(job, other), daemon=True)
        self.process.start()
        other.close()

    def train(self, graph: str, model: str) -> str | None:
        """Return the row of a cell; ``None`` if the process has failed or does not stop."""
        self.connection.send((graph, model))
        left = self.job.seconds_left()
        try:
            if not self.connection.poll(None if left is None else left + GRACE):
                return None
            row: str | None = self.connection.recv()
        except EOFError:
            return None
        return row


def serve(job: Job, connection: Connection) -> None:
    """Train the cells that a parent process sends."""
    progress = Progress("modern", quiet=True)
    while True:
        graph, model = connection.recv()
        try:
            row: str | None = job.train(graph, model, progress)
        except Exception as error:
            # After an error of CUDA, a process cannot use the device any more.
            print(f"{model} on {graph}: {type(error).__name__}: {error}", flush=True)
            row = None
        connection.send(row)


def collect(options: argparse.Namespace, settings: dict[str, Any]) -> list[str]:
    with open_records(options.folder / "records.sqlite"):
        pass  # the database is rebuilt from the Parquet file where it is missing
    database = options.folder / "records.sqlite"
    graphs, models = zip(*cells_of(options.cells))
    # The summary lists them in the order of the table.
    columns = [column.dataset for column in TABLES["modern"].columns if column.dataset in graphs]
    return collect_modern(
        [database],
        options.collect,
        list(dict.fromkeys([*columns, *graphs])),
        list(dict.fromkeys(models)),
        options.draws,
        settings,
        options.root,
    )


if __name__ == "__main__":
    main()
