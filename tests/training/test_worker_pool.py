"""Worker processes that stay alive for many calls."""

import math
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing import current_process
from typing import Any

import pytest

from nfgnn.data import load_dataset
from nfgnn.progress import Progress
from nfgnn.training import (
    Graph,
    InMemory,
    InProcess,
    RunConfig,
    RunResult,
    RunSpec,
    StopTraining,
    TimeLimit,
    WorkerPool,
    execute,
)

GRAPH = Graph.of(load_dataset("karate"))
QUIET = Progress(quiet=True)


def describe(result: RunResult) -> tuple[int, list[float], int]:
    """Return the process, the losses and the number of epochs of a run."""
    history = result.classifier.history_
    return os.getpid(), history.val_loss, history.epochs


def kill_this_process(result: RunResult) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def specs(seeds: range, **settings: Any) -> list[RunSpec]:
    config = RunConfig.resolve("GCN", {"epochs": 3, **settings}, None, None, "none")
    return [RunSpec(GRAPH, "stratified", seed, config) for seed in seeds]


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(GRAPH, 2) as started:
        started.start()
        assert started._workers is not None
        deadline = time.monotonic() + 60
        while not started._has_answered() and time.monotonic() < deadline:
            time.sleep(0.05)
        yield started


def test_workers_stay_and_give_the_same_numbers_as_this_process(pool: WorkerPool) -> None:
    own = InMemory(describe)
    execute(specs(range(4)), own, InProcess(single_thread=True), QUIET, "cpu")
    processes = set()
    for seeds in (range(2), range(2, 4)):
        results = InMemory(describe)
        assert execute(specs(seeds), results, pool, QUIET, "cpu") == []
        for spec in specs(seeds):
            process, losses, _ = results.find(spec)
            assert losses == own.find(spec)[1]
            processes.add(process)
    assert os.getpid() not in processes
    assert len(processes) <= 2


def test_trainings_end_at_the_time_limit(pool: WorkerPool) -> None:
    pool.limit.longest = 0.0
    results = InMemory(describe)
    execute(specs(range(1), epochs=1000), results, pool, QUIET, "cpu")
    assert results.results[0][2] == 1
    pool.limit.longest = math.inf


def test_what_cannot_end_in_time_is_not_started(pool: WorkerPool) -> None:
    pool.limit.end = time.monotonic() + 60
    pool.limit.estimate = lambda batch: 61.0 if batch[0].seed == 1 else 1.0
    results = InMemory(describe)
    execute(specs(range(3)), results, pool, QUIET, "cpu")
    pool.limit.end = math.inf
    assert results.missing(specs(range(3))) == specs(range(1, 2))


def test_a_worker_that_dies_fails_its_run_only(pool: WorkerPool) -> None:
    failures = execute(specs(range(1)), InMemory(kill_this_process), pool, QUIET, "cpu")
    assert [failure.message for failure in failures] == [
        "a worker process died, possibly out of memory"
    ]
    results = InMemory(describe)
    assert execute(specs(range(1)), results, pool, QUIET, "cpu") == []


def test_a_time_limit_keeps_the_best_weights_in_this_process() -> None:
    limit = TimeLimit(longest=0.0)
    with pytest.raises(StopTraining):
        limit.from_now().check()
    results = InMemory(describe)
    execute(specs(range(1), epochs=1000), results, InProcess(limit=limit), QUIET, "cpu")
    assert results.results[0][2] == 1
    limit.end = 0.0
    skipped = InMemory(describe)
    execute(specs(range(1)), skipped, InProcess(limit=limit), QUIET, "cpu")
    assert skipped.results == []


def test_a_worker_that_imports_an_unguarded_script_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setitem(vars(current_process()), "_inheriting", True)
    WorkerPool(GRAPH, 2)
    assert ended == [1]
