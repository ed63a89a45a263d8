"""Run folders: whole or not there, and resumed to the same numbers."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from nfgnn.data import load_dataset
from nfgnn.errors import UserError
from nfgnn.run_progress import RunDisplay
from nfgnn.training import Experiment, RunConfig, load_run, run_experiment
from nfgnn.training.metrics import summarise
from nfgnn.training.process_pool import processes_for

TIMES = {"seconds", "epoch_ms", "run"}


def experiment(seeds=(0, 1, 2), **settings) -> Experiment:
    data = load_dataset("mixed", num_nodes=200)
    config = RunConfig.resolve("NFGNN", {"K": 3, "epochs": 20, **settings}, "mixed", "full")
    return Experiment(data, "full", list(seeds), config)


def numbers(summary: dict) -> dict:
    return {k: v for k, v in summary.items() if k not in TIMES}


def run(folder: Path, resume: bool = False, **kwargs) -> dict:
    return run_experiment(experiment(**kwargs), folder, RunDisplay("test", quiet=True), resume)


def test_a_run_folder_holds_everything(tmp_path: Path) -> None:
    summary = run(tmp_path / "run")
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "config.json",
        "seed-0",
        "seed-1",
        "seed-2",
        "summary.json",
    ]
    names = sorted(p.name for p in (tmp_path / "run" / "seed-1").iterdir())
    assert names == [
        "classifier.json",
        "coefficients.npy",
        "history.csv",
        "metrics.json",
        "weights.safetensors",
    ]
    classifier = load_run(tmp_path / "run", seed=1)
    psi = np.load(tmp_path / "run" / "seed-1" / "coefficients.npy", allow_pickle=False)
    np.testing.assert_array_equal(
        psi, classifier.coefficients(load_dataset("mixed", num_nodes=200)).numpy()
    )
    assert (
        len((tmp_path / "run" / "seed-1" / "history.csv").read_text().splitlines())
        == 1 + summary["epochs"][1]
    )


def test_the_same_experiment_gives_the_same_numbers_and_the_same_folder_name(
    tmp_path: Path,
) -> None:
    assert numbers(run(tmp_path / "a")) == numbers(run(tmp_path / "b"))
    assert experiment().default_folder() == experiment().default_folder()
    assert experiment().default_folder() != experiment(lr=0.5).default_folder()


def test_resume_takes_finished_runs_as_they_are(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")

    class Killed(RunDisplay):
        def runs_started(self, seeds: list[int], done: int, total: int, max_epochs: int) -> None:
            if seeds == [2]:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment(), tmp_path / "run", Killed("test", quiet=True))
    assert not (tmp_path / "run").exists()
    resumed = run_experiment(
        experiment(), tmp_path / "run", RunDisplay("test", quiet=True), resume=True
    )
    assert numbers(resumed) == numbers(whole)
    # What is done is not done again: an altered finished run shows through.
    metrics = tmp_path / "run" / "summary.json"
    content = json.loads(metrics.read_text())
    content["epochs"] = [1, 2, 3]
    metrics.write_text(json.dumps(content))
    assert run(tmp_path / "run", resume=True)["epochs"] == [1, 2, 3]
    assert run(tmp_path / "run", resume=False)["epochs"] == whole["epochs"]


def test_resume_does_not_mix_experiments(tmp_path: Path) -> None:
    run(tmp_path / "run", lr=0.001)
    assert numbers(run(tmp_path / "run", resume=True)) == numbers(run(tmp_path / "other"))


def test_kill_minus_nine_leaves_no_half_written_folder(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "nfgnn",
        "train",
        "karate",
        "--protocol",
        "stratified",
        "--runs",
        "6",
    ]
    command += ["--set", "epochs=150", "--out", str(tmp_path / "run"), "--json"]
    environment = {**os.environ, "NFGNN_DATA": str(tmp_path), "OMP_NUM_THREADS": "1"}

    def complete(*extra: str) -> dict:
        out = subprocess.run(
            [*command, *extra], env=environment, capture_output=True, check=True, text=True
        )
        return numbers(json.loads(out.stdout))

    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not list(tmp_path.glob(".run.partial/seed-1")) and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "run").exists()
    resumed = complete("--resume")
    assert [p.name for p in tmp_path.iterdir() if "run" in p.name] == ["run"]
    assert resumed == complete()


def test_runs_side_by_side_equal_runs_one_after_the_other(tmp_path: Path) -> None:
    """File by file; also after the first process was killed while others worked for it."""
    command = [
        sys.executable,
        "-m",
        "nfgnn",
        "train",
        "karate",
        "--protocol",
        "stratified",
        "--runs",
        "4",
        "--json",
    ]
    environment = {**os.environ, "NFGNN_DATA": str(tmp_path)}

    def complete(folder: str, *extra: str) -> dict[str, bytes]:
        subprocess.run(
            [*command, "--out", str(tmp_path / folder), *extra],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        names = ("weights.safetensors", "history.csv", "coefficients.npy")
        return {
            f"{seed} {name}": (tmp_path / folder / f"seed-{seed}" / name).read_bytes()
            for seed in range(4)
            for name in names
        }

    alone = complete("alone", "--workers", "1")
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "run"), "--workers", "2"],
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    while len(list(tmp_path.glob(".run.partial/seed-*"))) < 2 and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert complete("run", "--workers", "2", "--resume") == alone


def test_processes_are_started_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4), raising=False)
    assert processes_for(runs=9, seconds=0.1) == 1  # to start one takes longer than all of them
    assert processes_for(runs=9, seconds=60) == 4
    assert processes_for(runs=2, seconds=60) == 2
    assert processes_for(runs=1, seconds=600) == 1


def test_two_processes_do_not_write_one_folder(tmp_path: Path) -> None:
    class Nested(RunDisplay):
        def runs_started(self, seeds: list[int], done: int, total: int, max_epochs: int) -> None:
            if done == 0:
                with pytest.raises(UserError, match="another process is writing"):
                    run(tmp_path / "run")

    run_experiment(experiment(seeds=(0,)), tmp_path / "run", Nested("test", quiet=True))


def test_a_folder_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="is not a run folder"):
        run(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_summary_statistics() -> None:
    from scipy import stats

    values = [0.7, 0.8, 0.75, 0.9]
    summary = summarise(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert summary["mean"] == pytest.approx(np.mean(values))
    assert summary["ci95"] == pytest.approx((high - low) / 2)
    assert summary["std"] == pytest.approx(np.std(values, ddof=1))
    assert summary["values"] == values
    assert summarise([0.5])["ci95"] is None
