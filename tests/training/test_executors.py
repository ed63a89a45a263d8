"""Executors: every one gives the results of running in this process."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.experiments import experiment, run_quietly

from nfgnn.data import load_dataset
from nfgnn.errors import UserError
from nfgnn.progress import Progress
from nfgnn.training import (
    Executor,
    Graph,
    InMemory,
    InProcess,
    ProcessPool,
    RecordResults,
    Records,
    RunConfig,
    RunSpec,
    execute,
)
from nfgnn.training.executors.process_pool import _run_in_pool, suitable_workers

QUIET = Progress(quiet=True)


def specs(model: str = "GCN", seeds: range = range(3), **settings: Any) -> list[RunSpec]:
    config = RunConfig.resolve(model, {"epochs": 4, **settings}, None, None, "none")
    graph = Graph.named("karate")
    return [RunSpec(graph, "stratified", seed, config) for seed in seeds]


def scores(folder: Path, executor: Executor) -> list[Any]:
    """The records of some runs without their times."""
    with Records(folder / "r.sqlite") as records:
        results = RecordResults(records, "cpu")
        assert execute(specs(), results, executor, QUIET, "cpu") == []
        runs = records.all()
    return [(r.key, {k: v for k, v in r.metrics.items() if k != "seconds"}) for r in runs]


def test_a_pool_gives_the_records_of_this_process(tmp_path: Path) -> None:
    alone = scores(tmp_path / "alone", InProcess())
    assert len(alone) == 3
    assert scores(tmp_path / "pool", ProcessPool(2)) == alone
    assert scores(tmp_path / "one", ProcessPool(1)) == alone
    assert scores(tmp_path / "auto", ProcessPool()) == alone


def test_workers_are_started_where_they_save_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4), raising=False)
    assert suitable_workers(runs=9, seconds=0.1) == 1  # starting one takes longer than all runs
    assert suitable_workers(runs=9, seconds=60) == 4
    assert suitable_workers(runs=2, seconds=60) == 2
    assert suitable_workers(runs=1, seconds=600) == 1


def test_a_pool_reports_epochs_of_its_workers(tmp_path: Path) -> None:
    """The callback receives histories while the workers train."""
    config = RunConfig.resolve("GCN", {"epochs": 800, "patience": 800}, None, None, "none")
    what = experiment(load_dataset("karate"), "stratified", [0, 1], config)

    class Recorded(ProcessPool):
        def run(self, batches, work, on_epoch):
            def recorded(batch, history):
                epochs.append((batch[0].seed, history.epochs))
                on_epoch(batch, history)

            yield from super().run(batches, work, recorded)

    epochs: list[tuple[int, int]] = []
    run_quietly(what, tmp_path / "run", Recorded(2))
    assert {seed for seed, _ in epochs} <= {0, 1}
    assert epochs


@pytest.mark.timeout(60)
def test_an_error_while_workers_report_ends_the_pool() -> None:
    """Workers fill the pipe of events, which nobody reads after the error."""

    class Stops(ProcessPool):
        def run(self, batches, work, on_epoch):
            def stop(batch, history):
                raise RuntimeError("stopped by the callback")

            yield from super().run(batches, work, stop)

    endless = specs(seeds=range(4), epochs=100_000, patience=100_000)
    with pytest.raises(RuntimeError, match="stopped by the callback"):
        execute(endless, InMemory(), Stops(2), QUIET, "cpu")


class Marked:
    """A batch that is sent to a worker after the first one has created a file."""

    def __init__(self, file: Path, is_first: bool) -> None:
        self.file = file
        self.is_first = is_first

    def __reduce__(self) -> tuple[Any, ...]:
        while not self.is_first and not self.file.exists():
            time.sleep(0.05)
        time.sleep(1)  # until the pool notices that the worker is dead
        return Marked, (self.file, self.is_first)


def die(batch: Marked, on_epoch: object) -> list[Any]:
    batch.file.touch()
    os._exit(1)


@pytest.mark.timeout(60)
def test_a_worker_may_die_before_all_batches_are_sent(tmp_path: Path) -> None:
    batches = [Marked(tmp_path / "started", is_first) for is_first in (True, False)]
    with pytest.raises(UserError, match="a worker process died"):
        list(_run_in_pool(batches, die, lambda batch, history: None, workers=2))


def test_failures_are_returned_and_do_not_stop_other_runs() -> None:
    results = InMemory()
    runs = [*specs(lr=1e38, weight_decay=1e38, seeds=range(1)), *specs(seeds=range(1))]
    (failure,) = execute(runs, results, InProcess(), QUIET, "cpu")
    assert failure.diverged
    assert failure.line.startswith("GCN on karate (stratified), seed 0: the validation loss")
    assert [result.spec for result in results.results] == runs[1:]


def test_results_that_exist_are_not_made_again() -> None:
    results = InMemory()
    execute(specs(), results, InProcess(), QUIET, "cpu")
    first = list(results.results)
    execute(specs(seeds=range(4)), results, InProcess(), QUIET, "cpu")
    assert results.results[:3] == first
    assert [result.spec.seed for result in results.results] == [0, 1, 2, 3]
