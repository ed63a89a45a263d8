"""Make the runs of the evaluation of ``nfgnn auto``.

Jobs run in parallel processes, each on its own cores, so that a result represents a
machine with that number of cores.
"""

import contextlib
import copy
import math
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

import torch

from nfgnn.auto import AutoResult, run_auto
from nfgnn.errors import UserError
from nfgnn.paper.search.portfolio_candidates import Column
from nfgnn.paper.search.portfolio_files import portfolio_text
from nfgnn.paper.search.portfolio_matrix import Matrix
from nfgnn.paper.search.portfolio_runs import column_graph
from nfgnn.paper.search.portfolio_selection import select_portfolio
from nfgnn.paper.search.tune import Search, run_search
from nfgnn.paper.studies.auto_plan import AUTO, MODEL, TUNE, Job, Task, run_config
from nfgnn.paper.studies.auto_records import EvaluationRecord, append_record, read_records
from nfgnn.progress import Progress, duration
from nfgnn.training import (
    Graph,
    InMemory,
    Record,
    Records,
    RunConfig,
    RunSpec,
    UntilDeadline,
    device_name,
    execute,
    machine_name,
)

_MAX_TRIALS = 10_000
_QUIET = Progress(quiet=True)


@dataclass(frozen=True)
class Evaluation:
    """What all jobs share.

    Args:
        folder: for the records.
        data: folder of the graphs.
        portfolios: folder with a portfolio file per graph, selected without it.
        end: wall-clock time at which everything must be finished.
        device: where to train.
        cores: number of cores of a process.
        command: how the evaluation can be repeated.
    """

    folder: Path
    data: Path
    portfolios: Path
    end: float = math.inf
    device: str = "cpu"
    cores: int = 2
    command: str = ""

    @property
    def seconds_left(self) -> float:
        return self.end - time.time()

    def portfolio(self, graph: str) -> Path:
        return self.portfolios / f"{graph}.toml"


def write_portfolios(matrix: Matrix, columns: Sequence[Column], folder: Path) -> None:
    """Write a portfolio per graph that is selected from the results on all other graphs."""
    folder.mkdir(parents=True, exist_ok=True)
    for column in columns:
        others = matrix.without(column.name)
        chosen = [others.candidates[row].config for row in select_portfolio(others)]
        notes = [f"Selected without {column.name} and the graphs that share nodes with it."]
        (folder / f"{column.name}.toml").write_text(portfolio_text(chosen, notes))


def missing_jobs(jobs: Sequence[Job], folder: Path) -> list[Job]:
    """Return the jobs without the tasks that are recorded."""
    recorded = {record.task for record in read_records(folder)}
    missing = []
    for job in jobs:
        tasks = tuple(task for task in job.tasks if task not in recorded)
        if tasks:
            missing.append(replace(job, tasks=tasks))
    return missing


def run_evaluation(
    jobs: Sequence[Job], evaluation: Evaluation, workers: int, progress: Progress
) -> None:
    """Run jobs in several processes. A job that may not end in time is not started."""
    waiting = missing_jobs(jobs, evaluation.folder)
    for job in waiting:
        path = evaluation.portfolio(job.column.name)
        if job.tasks[0].method == AUTO and not path.is_file():
            raise UserError(f"there is no portfolio {path}: write it with --write-portfolios")
    progress.start(len(waiting), len(waiting), "jobs")
    context = get_context("spawn")
    slots: SimpleQueue[list[int]] = context.SimpleQueue()
    for cores in core_sets(workers, evaluation.cores):
        slots.put(cores)
    with ProcessPoolExecutor(workers, context, _take_cores, (slots,)) as pool:
        running: dict[Future[str], Job] = {}
        while waiting or running:
            startable = [job for job in waiting if job.least_seconds < evaluation.seconds_left]
            while startable and len(running) < workers:
                job = startable.pop(0)
                waiting.remove(job)
                running[pool.submit(run_job, job, evaluation)] = job
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                running.pop(future)
                progress.say(future.result())
                progress.advance(1, "", plain=False)
    if waiting:
        progress.say(f"{len(waiting)} jobs are left for another call")


def core_sets(workers: int, cores: int) -> list[list[int]]:
    """Return the cores of every process; they share cores if there are too few."""
    usable = sorted(os.sched_getaffinity(0))
    places = range(workers * cores)
    chosen = [usable[place % len(usable)] for place in places]
    return [chosen[start : start + cores] for start in range(0, len(chosen), cores)]


def _take_cores(slots: "SimpleQueue[list[int]]") -> None:
    cores = slots.get()
    os.sched_setaffinity(0, cores)
    torch.set_num_threads(len(set(cores)))


def run_job(job: Job, evaluation: Evaluation) -> str:
    """Work on the tasks of a job, record the results, and return a line that reports them."""
    graph = column_graph(job.column, evaluation.data)
    task = job.tasks[0]
    started = time.monotonic()
    try:
        if task.method == AUTO:
            records = [_auto(graph, job.column, task, evaluation)]
        elif task.method == TUNE:
            records = _tune(graph, job.column, job.tasks, evaluation)
        else:
            config = run_config(job.column, task.method)
            records = _train(graph, job.column, job.tasks, config, evaluation)
    except UserError as error:
        seconds = time.monotonic() - started
        records = [
            _record(graph, job.column, task, evaluation, seconds, problem=str(error))
            for task in job.tasks
        ]
    for record in records:
        append_record(evaluation.folder, record)
    scores = [record.problem or f"{100 * (record.test or 0.0):.2f}" for record in records]
    budget = "" if task.seconds is None else f" {duration(task.seconds)}"
    label = f"{job.column.name}: {task.method}{budget}"
    return f"{label}: {', '.join(scores) or 'not finished'} ({time.monotonic() - started:.0f} s)"


def _auto(graph: Graph, column: Column, task: Task, evaluation: Evaluation) -> EvaluationRecord:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = run_auto(
            graph,
            column.protocol,
            task.seed,
            time=task.seconds,
            max_runs=None,
            metric=None,
            device=evaluation.device,
            workers=None,
            folder=Path(folder) / "run",
            source=None,
            portfolio=evaluation.portfolio(column.name),
            single=False,
            resume=False,
            overwrite=False,
            progress=_QUIET,
        )
    seconds = time.monotonic() - started
    best = result.ensemble_test or result.test
    test = None if best is None else best.value
    validation = result.best.validation.value
    details = {"nodes": graph.data.num_nodes, **_auto_details(result)}
    return _record(graph, column, task, evaluation, seconds, test, validation, details)


def _auto_details(result: AutoResult) -> dict[str, Any]:
    ensemble = [] if result.ensemble is None else result.ensemble.members
    return {
        "single": None if result.test is None else result.test.value,
        "best": result.best.config.to_dict(),
        "ensemble": {member.name: member.weight for member in ensemble},
        "runs": result.runs,
        "validation_splits": result.validation_splits,
        "seconds_to_first": result.seconds_to_first,
        "leaderboard": [
            [entry.name, entry.origin, entry.validation.value] for entry in result.leaderboard[:10]
        ],
        "sentences": list(result.value.sentences),
    }


class _TimeIsOver(Exception):
    """Ends a search whose time is over."""


class _Deadline(Progress):
    """Ends what reports to it at a time limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(quiet=True)
        self.end = time.monotonic() + seconds

    def status(self, text: str, done: float | None = None) -> None:
        if time.monotonic() > self.end:
            raise _TimeIsOver


def _tune(
    graph: Graph, column: Column, tasks: Sequence[Task], evaluation: Evaluation
) -> list[EvaluationRecord]:
    """Search NFGNN's settings for so long, then train the best of the finished trials."""
    budget = tasks[0].seconds
    assert budget is not None
    started = time.monotonic()
    # Without its name, the graph has no preset that the search could start with.
    data = copy.copy(graph.data)
    data.registered_name = None
    search = Search(data, MODEL, column.protocol, trials=_MAX_TRIALS, device=evaluation.device)
    with tempfile.TemporaryDirectory() as folder, Records(Path(folder) / "t.sqlite") as records:
        with contextlib.suppress(_TimeIsOver):
            run_search(search, records, _Deadline(budget))
        trials = _num_complete(records.all(), len(search.seeds))
        config = search.config({})
        if trials:
            # The search repeats its proposals, and finds all of them in the records.
            finished = replace(search, trials=trials - 1)
            best = run_search(finished, records, _QUIET).best
            config = search.config(best.settings)
    details = {"trials": trials, "best": config.to_dict()}
    found = _train(graph, column, tasks, config, evaluation)
    seconds = round(time.monotonic() - started, 2)
    return [replace(record, seconds=seconds, details=details) for record in found]


def _num_complete(records: Sequence[Record], seeds: int) -> int:
    """Return the number of configurations that were trained with all seeds."""
    counts: dict[str, int] = {}
    for record in records:
        key = repr(sorted(record.config.items()))
        counts[key] = counts.get(key, 0) + 1
    return sum(count == seeds for count in counts.values())


def _train(
    graph: Graph,
    column: Column,
    tasks: Sequence[Task],
    config: RunConfig,
    evaluation: Evaluation,
) -> list[EvaluationRecord]:
    """Train one configuration with the seeds of the tasks, and score the test nodes."""
    fitting = config.for_graph(graph.data)
    specs = [RunSpec(graph, column.protocol, task.seed, fitting) for task in tasks]
    results = InMemory(Record.of)
    executor = UntilDeadline(evaluation.seconds_left)
    failures = execute(specs, results, executor, _QUIET, evaluation.device)
    records = []
    for task, spec in zip(tasks, specs):
        run = results.find(spec)
        if run is not None:
            test = run.metrics[f"test_{spec.metric.name}"]
            validation = run.metrics[f"val_{spec.metric.name}"]
            seconds = run.metrics["seconds"]
            details = {"config": dict(run.config)}
            records.append(
                _record(graph, column, task, evaluation, seconds, test, validation, details)
            )
        for failure in failures:
            if failure.spec == spec:
                problem = failure.message
                records.append(_record(graph, column, task, evaluation, 0.0, problem=problem))
    return records


def _record(
    graph: Graph,
    column: Column,
    task: Task,
    evaluation: Evaluation,
    seconds: float,
    test: float | None = None,
    validation: float | None = None,
    details: dict[str, Any] | None = None,
    problem: str = "",
) -> EvaluationRecord:
    metric = RunSpec(graph, column.protocol, task.seed, RunConfig(MODEL)).metric
    return EvaluationRecord(
        graph=task.graph,
        protocol=column.protocol,
        seed=task.seed,
        method=task.method,
        seconds_allowed=task.seconds,
        metric=metric.name,
        test=test,
        validation=validation,
        seconds=round(seconds, 2),
        device=device_name(evaluation.device),
        machine=machine_name(),
        cores=evaluation.cores,
        command=evaluation.command,
        problem=problem,
        details=details or {},
    )
