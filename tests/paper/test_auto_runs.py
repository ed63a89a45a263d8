"""The runs of the evaluation of auto: what is recorded, and what is left to do."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from nfgnn.errors import UserError
from nfgnn.nn import MODELS
from nfgnn.paper.search.portfolio_candidates import Column, relatives
from nfgnn.paper.studies.auto_plan import (
    AUTO,
    DEFAULTS,
    PRESET,
    TUNE,
    Job,
    Task,
    evaluation_columns,
    evaluation_jobs,
    has_preset,
    run_config,
)
from nfgnn.paper.studies.auto_records import FILE, append_record, read_records
from nfgnn.paper.studies.auto_runs import (
    Evaluation,
    core_sets,
    missing_jobs,
    run_evaluation,
    run_job,
)
from nfgnn.progress import Progress
from nfgnn.training import RunConfig

KARATE = Column("karate", "stratified")


def test_the_plan_has_every_graph_once() -> None:
    columns = evaluation_columns()
    assert len({column.name for column in columns}) == len(columns) == 18
    assert sum(column.protocol == "full" for column in columns) == 10
    jobs = evaluation_jobs(columns, [AUTO, PRESET, DEFAULTS], [30, 300], [1000, 1001])
    tasks = [task for job in jobs for task in job.tasks]
    assert len(set(tasks)) == len(tasks) == 2 * (2 * 18 + 14 + len(MODELS) * 18)
    assert jobs[0].tasks[0].seconds == 300
    assert "texas" in relatives("cornell")
    with pytest.raises(UserError, match="'karate' is not evaluated"):
        evaluation_columns(["karate"])


def test_defaults_do_not_know_the_preset() -> None:
    (texas,) = evaluation_columns(["texas"])
    default = RunConfig.resolve("NFGNN", {}, None, None)
    assert has_preset(texas)
    assert run_config(texas, "NFGNN") == default
    assert run_config(texas, PRESET) == RunConfig.resolve("NFGNN", {}, "texas", "full") != default
    assert not has_preset(KARATE)


def test_results_are_recorded_once(tmp_path: Path) -> None:
    evaluation = Evaluation(tmp_path / "out", tmp_path, tmp_path)
    job = Job(KARATE, (Task("karate", 1000, "MLP"), Task("karate", 1001, "MLP")))
    assert run_job(job, evaluation).startswith("karate: MLP: ")
    tune = Job(KARATE, (Task("karate", 1000, TUNE, 0.01),))
    run_job(tune, evaluation)
    first, second, tuned = read_records(tmp_path / "out")
    assert (first.task, second.task, tuned.task) == (*job.tasks, *tune.tasks)
    assert 0 < first.test <= 1
    assert tuned.details["trials"] == 0  # there was no time for any
    left = Job(KARATE, (Task("karate", 1001, "MLP"), Task("karate", 1002, "MLP")))
    assert missing_jobs([job, tune, left], tmp_path / "out") == [
        Job(KARATE, (Task("karate", 1002, "MLP"),))
    ]
    # A line that a killed process has left unfinished is not read.
    with (tmp_path / "out" / FILE).open("a") as file:
        file.write('\n{"graph": "kar')
    append_record(tmp_path / "out", replace(first, seed=1005))
    assert [record.seed for record in read_records(tmp_path / "out")] == [1000, 1001, 1000, 1005]


def test_nothing_starts_that_cannot_end_in_time(tmp_path: Path) -> None:
    (tmp_path / "karate.toml").write_text("")
    evaluation = Evaluation(tmp_path / "out", tmp_path, tmp_path, end=0.0)
    job = Job(KARATE, (Task("karate", 1000, AUTO, 30.0),))
    run_evaluation([job], evaluation, 1, Progress(quiet=True))
    assert read_records(tmp_path / "out") == []
    (tmp_path / "karate.toml").unlink()
    with pytest.raises(UserError, match="there is no portfolio"):
        run_evaluation([job], evaluation, 1, Progress(quiet=True))


def test_every_process_has_cores_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 4, 5, 6}, raising=False)
    assert core_sets(2, 2) == [[3, 4], [5, 6]]
    assert core_sets(3, 2) == [[3, 4], [5, 6], [3, 4]]
