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
from helpers.experiments import experiment as make_experiment
from helpers.experiments import run_quietly

from nfgnn.data import load_dataset, split
from nfgnn.errors import UserError
from nfgnn.training import Experiment, InProcess, NodeClassifier, RunConfig, load_run

TIMES = {"seconds", "epoch_ms", "run"}


def experiment(seeds=(0, 1, 2), **settings) -> Experiment:
    data = load_dataset("mixed", num_nodes=200)
    config = RunConfig.resolve("NFGNN", {"K": 3, "epochs": 20, **settings}, "mixed", "full")
    return make_experiment(data, "full", seeds, config)


def numbers(summary: dict) -> dict:
    return {k: v for k, v in summary.items() if k not in TIMES}


def run(folder: Path, resume: bool = False, **kwargs) -> dict:
    return run_quietly(experiment(**kwargs), folder, resume=resume)


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

    class Interrupted(InProcess):
        def run(self, batches, work, on_epoch):
            yield from super().run(batches[:2], work, on_epoch)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_quietly(experiment(), tmp_path / "run", Interrupted())
    assert not (tmp_path / "run").exists()
    resumed = run_quietly(experiment(), tmp_path / "run", resume=True)
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


def test_two_processes_do_not_write_one_folder(tmp_path: Path) -> None:
    class Nested(InProcess):
        def run(self, batches, work, on_epoch):
            with pytest.raises(UserError, match="another process is writing"):
                run(tmp_path / "run")
            yield from super().run(batches, work, on_epoch)

    run_quietly(experiment(seeds=(0,)), tmp_path / "run", Nested())


def thesis(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "thesis.txt"
    file.write_text("years of work")
    return file


def test_a_folder_without_a_run_is_not_replaced(tmp_path: Path) -> None:
    file = thesis(tmp_path / "proj")
    with pytest.raises(UserError, match=r"nfgnn has not written \(thesis.txt\)"):
        run(tmp_path / "proj")
    assert file.read_text() == "years of work"


@pytest.mark.parametrize("content", ["{}", "[]", "null", '{"seeds": [0]}', "not JSON"])
def test_a_config_file_does_not_make_a_run_folder(content: str, tmp_path: Path) -> None:
    """Any folder with a ``config.json`` used to count as a run folder and was replaced."""
    folder = tmp_path / "proj"
    file = thesis(folder)
    (folder / "config.json").write_text(content)
    with pytest.raises(UserError):
        run(folder)
    assert file.read_text() == "years of work"
    file.unlink()
    with pytest.raises(UserError, match=r"is not a run folder|is damaged"):
        run(folder)
    assert (folder / "config.json").read_text() == content


def test_a_run_folder_with_files_of_others_is_not_replaced(tmp_path: Path) -> None:
    run(tmp_path / "run")
    file = thesis(tmp_path / "run")
    with pytest.raises(UserError, match=r"thesis\.txt"):
        run(tmp_path / "run", lr=0.5)
    assert file.read_text() == "years of work"


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(UserError, match="is a file"):
        run(tmp_path / "run")
    assert (tmp_path / "run").read_text() == "a file"


def test_saving_a_classifier_does_not_replace_other_folders(tmp_path: Path) -> None:
    file = thesis(tmp_path / "proj")
    data = split(load_dataset("karate"), "stratified", 0)
    classifier = NodeClassifier("MLP", epochs=2).fit(data)
    with pytest.raises(UserError, match=r"thesis\.txt"):
        classifier.save(tmp_path / "proj")
    assert file.read_text() == "years of work"
    classifier.save(tmp_path / "model")
    classifier.save(tmp_path / "model")  # a saved model is replaced
    assert (NodeClassifier.load(tmp_path / "model").predict(data) == classifier.predict(data)).all()
