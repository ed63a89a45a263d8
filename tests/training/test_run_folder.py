"""Run folders: whole or not there, and resumed to the same numbers."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.command_line import main_status
from helpers.experiments import experiment as make_experiment
from helpers.experiments import run_quietly
from helpers.forked_python import start_python
from safetensors.torch import load_file, save_file

from nfgnn.data import load_dataset, split
from nfgnn.errors import UserError
from nfgnn.training import (
    Experiment,
    InProcess,
    NodeClassifier,
    RunConfig,
    load_run,
    prediction_table,
    verify_run,
)
from nfgnn.training.records.read_run_folder import read_description, read_summary
from nfgnn.training.records.run_summary import dead_run_summary

V1 = Path(__file__).parents[1] / "golden" / "run_folder_v1"
TIMES = {"seconds", "epoch_ms", "run"}


def experiment(seeds=(0, 1, 2), **settings) -> Experiment:
    data = load_dataset("mixed", num_nodes=200)
    config = RunConfig.resolve("NFGNN", {"K": 3, "epochs": 20, **settings}, "mixed", "full")
    return make_experiment(data, "full", seeds, config)


def numbers(summary: dict) -> dict:
    return {k: v for k, v in summary.items() if k not in TIMES}


def run(folder: Path, resume: bool = False, overwrite: bool = False, **kwargs) -> dict:
    return run_quietly(experiment(**kwargs), folder, resume=resume, overwrite=overwrite)


def test_a_run_folder_holds_everything(tmp_path: Path) -> None:
    summary = run(tmp_path / "run")
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "SHA256SUMS",
        "config.json",
        "report.json",
        "report.md",
        "seed-0",
        "seed-1",
        "seed-2",
        "summary.json",
    ]
    names = sorted(p.name for p in (tmp_path / "run" / "seed-1").iterdir())
    assert names == [
        "SHA256SUMS",
        "classifier.json",
        "coefficients.npy",
        "history.csv",
        "metrics.json",
        "report.json",
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
    # What is done is not done again, unless it has to be.
    for resume in (True, False):
        assert run(tmp_path / "run", resume=resume) == resumed
    metrics = tmp_path / "run" / "summary.json"
    content = json.loads(metrics.read_text())
    content["epochs"] = [1, 2, 3]
    metrics.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"summary\.json: is damaged.*--overwrite"):
        run(tmp_path / "run", resume=True)
    again = run(tmp_path / "run", overwrite=True)
    assert again["epochs"] == whole["epochs"]
    assert again["seconds"] != resumed["seconds"]


def test_resume_does_not_mix_experiments(tmp_path: Path) -> None:
    run(tmp_path / "run", lr=0.001)
    with pytest.raises(UserError, match=r"with different content.*--overwrite"):
        run(tmp_path / "run", resume=True)
    replaced = run(tmp_path / "run", resume=True, overwrite=True)
    assert numbers(replaced) == numbers(run(tmp_path / "other"))


@pytest.fixture
def killed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that starts `nfgnn ARGUMENTS` and kills it when so many runs are done."""
    monkeypatch.setenv("NFGNN_DATA", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def start_and_kill(runs: int, *arguments: str) -> None:
        process = start_python("-m", "nfgnn", *arguments)
        finished = ".run.partial/seed-*/metrics.json"
        while len(list(tmp_path.glob(finished))) < runs and process.is_alive():
            time.sleep(0.02)
        process.kill()
        process.join()
        assert not (tmp_path / "run").exists()

    return start_and_kill


def files_of_runs(folder: Path, seeds: int) -> dict[str, bytes]:
    names = ("weights.safetensors", "history.csv", "coefficients.npy")
    return {
        f"{seed} {name}": (folder / f"seed-{seed}" / name).read_bytes()
        for seed in range(seeds)
        for name in names
    }


def test_kill_minus_nine_leaves_no_half_written_folder(
    tmp_path: Path, killed_run: Callable[..., None]
) -> None:
    command = ("train", "karate", "--protocol", "stratified", "--runs", "6", "--json")
    command += ("--set", "epochs=150", "--out")
    killed_run(2, *command, str(tmp_path / "run"))
    assert main_status(*command, str(tmp_path / "run"), "--resume") == 0
    assert [p.name for p in tmp_path.iterdir() if "run" in p.name] == ["run"]
    assert main_status(*command, str(tmp_path / "whole")) == 0
    assert files_of_runs(tmp_path / "run", 6) == files_of_runs(tmp_path / "whole", 6)
    assert numbers(read_summary(tmp_path / "run")) == numbers(read_summary(tmp_path / "whole"))


def test_runs_side_by_side_equal_runs_one_after_the_other(
    tmp_path: Path, killed_run: Callable[..., None]
) -> None:
    """File by file; also after the first process was killed while others worked for it."""
    command = ("train", "karate", "--protocol", "stratified", "--runs", "4", "--json", "--out")
    killed_run(2, *command, str(tmp_path / "run"), "--workers", "2")
    assert main_status(*command, str(tmp_path / "run"), "--workers", "1", "--resume") == 0
    assert main_status(*command, str(tmp_path / "alone"), "--workers", "1") == 0
    assert files_of_runs(tmp_path / "run", 4) == files_of_runs(tmp_path / "alone", 4)


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


def flip(path: Path, position: int = -3) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["classifier.json", "weights.safetensors"])
def test_a_flipped_bit_in_a_model_is_found_on_loading(name: str, tmp_path: Path) -> None:
    run(tmp_path / "run", seeds=(0,))
    assert verify_run(tmp_path / "run") == (11, {})
    flip(tmp_path / "run" / "seed-0" / name)
    with pytest.raises(UserError, match=rf"{name}: is damaged.*; train .* again"):
        load_run(tmp_path / "run")


@pytest.mark.parametrize("name", ["config.json", "summary.json"])
def test_a_changed_description_is_found_on_loading(name: str, tmp_path: Path) -> None:
    run(tmp_path / "run", seeds=(0,))
    path = tmp_path / "run" / name
    path.write_text(path.read_text().replace("0", "1"))
    with pytest.raises(UserError, match=rf"{name}: is damaged.*train the run again"):
        load_run(tmp_path / "run", seed=0 if name == "config.json" else 1)


def test_verification_reports_every_damaged_file(tmp_path: Path) -> None:
    run(tmp_path / "run", seeds=(0, 1))
    for name in ("history.csv", "metrics.json", "coefficients.npy"):
        flip(tmp_path / "run" / "seed-0" / name)
    (tmp_path / "run" / "seed-1" / "weights.safetensors").unlink()
    _, damaged = verify_run(tmp_path / "run")
    assert sorted(damaged) == [
        "seed-0/coefficients.npy",
        "seed-0/history.csv",
        "seed-0/metrics.json",
        "seed-1/weights.safetensors",
    ]
    shutil.rmtree(tmp_path / "run" / "seed-1")
    _, damaged = verify_run(tmp_path / "run")
    assert damaged["seed-1"] == "is missing"


def test_missing_checksums_are_damage_unless_the_folder_is_older(tmp_path: Path) -> None:
    run(tmp_path / "run", seeds=(0,))
    (tmp_path / "run" / "seed-0" / "SHA256SUMS").unlink()
    with pytest.raises(UserError, match="SHA256SUMS: is missing"):
        load_run(tmp_path / "run")
    _, damaged = verify_run(tmp_path / "run")
    assert "seed-0/SHA256SUMS" in damaged
    assert verify_run(V1) == (0, {})
    load_run(V1)


def test_checksums_have_the_format_of_sha256sum(tmp_path: Path) -> None:
    run(tmp_path / "run", seeds=(0,))
    for folder in (tmp_path / "run", tmp_path / "run" / "seed-0"):
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    """They used to become a class with the probability nan."""
    shutil.copytree(V1, tmp_path / "run")
    path = tmp_path / "run" / "seed-0" / "weights.safetensors"
    tensors = load_file(path)
    name = next(name for name in tensors if name.startswith("model."))
    tensors[name] = torch.full_like(tensors[name], torch.nan)
    save_file(tensors, path)
    with pytest.raises(UserError, match=r"weights\.safetensors: model.* not finite; train"):
        load_run(tmp_path / "run", seed=0)
    _, damaged = verify_run(tmp_path / "run")
    assert list(damaged) == ["seed-0/weights.safetensors"]


def test_probabilities_that_are_not_numbers_are_refused() -> None:
    data = load_dataset("karate")
    data.x = data.x * torch.inf
    with pytest.raises(UserError, match="probabilities that are not numbers"):
        prediction_table(load_run(V1), data)


def test_finite_weights_that_overflow_are_refused(tmp_path: Path) -> None:
    shutil.copytree(V1, tmp_path / "run")
    path = tmp_path / "run" / "seed-0" / "weights.safetensors"
    tensors = load_file(path)
    for name in tensors:
        if name.startswith("model."):
            tensors[name] = torch.full_like(tensors[name], 3e38)
    save_file(tensors, path)
    classifier = load_run(tmp_path / "run", seed=0)
    with pytest.raises(UserError, match=r"not numbers.*weights\.safetensors"):
        classifier.predict_proba(load_dataset("karate"))


@pytest.mark.parametrize("seed", [-1, 10**30])
def test_a_seed_that_no_model_has_is_refused(seed: int, tmp_path: Path) -> None:
    shutil.copytree(V1, tmp_path / "run")
    path = tmp_path / "run" / "seed-0" / "classifier.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "seed": seed}))
    with pytest.raises(UserError, match=r"seed-0 is not a saved model .*seed or scaling"):
        load_run(tmp_path / "run", seed=0)


def test_a_description_without_fingerprint_is_refused(tmp_path: Path) -> None:
    shutil.copytree(V1, tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    path.write_text(path.read_text().replace("fingerprint", "fingerprinu"))
    with pytest.raises(UserError, match=r"config\.json: has no fingerprint .*train the run again"):
        read_description(tmp_path / "run")


@pytest.mark.parametrize("content", ["{}", "[]", "nothing", ""])
def test_a_damaged_summary_is_refused(content: str, tmp_path: Path) -> None:
    shutil.copytree(V1, tmp_path / "run")
    (tmp_path / "run" / "summary.json").write_text(content)
    with pytest.raises(UserError, match=r"summary\.json is damaged.*train the run again"):
        load_run(tmp_path / "run")


@pytest.mark.parametrize(
    "change",
    [
        {"seeds": 3},
        {"seeds": ["a", "b"]},
        {"seeds": []},
        {"metric": 1},
        {"metric": "no metric"},
        {"val_accuracy": 0.5},
        {"val_accuracy": {"values": [None, None]}},
    ],
)
def test_a_summary_without_scores_of_its_seeds_is_refused(change: dict, tmp_path: Path) -> None:
    shutil.copytree(V1, tmp_path / "run")
    path = tmp_path / "run" / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UserError, match=r"summary\.json is damaged: its seeds.*train the run"):
        read_summary(tmp_path / "run")


@pytest.mark.parametrize("name", ["classifier.json", "weights.safetensors"])
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    shutil.copytree(V1, tmp_path / "run")
    (tmp_path / "run" / "seed-0" / name).unlink()
    with pytest.raises(UserError, match=f"{name} is missing"):
        load_run(tmp_path / "run", seed=0)


def test_the_marker_changes_neither_names_nor_comparisons(tmp_path: Path) -> None:
    """A folder of an earlier version, without the marker, is resumed and replaced."""
    whole = run(tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    content = json.loads(path.read_text())
    assert content.pop("kind") == "nfgnn run folder"
    assert content.pop("format") == 2
    assert content == experiment().description()
    path.write_text(json.dumps(content))
    (tmp_path / "run" / "SHA256SUMS").unlink()
    before = path.stat().st_mtime_ns
    assert run(tmp_path / "run", resume=True) == whole
    assert path.stat().st_mtime_ns == before
    run(tmp_path / "run", overwrite=True)
    assert json.loads(path.read_text())["kind"] == "nfgnn run folder"


def test_a_folder_of_another_kind_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    content = {**experiment().description(), "kind": "something else"}
    (tmp_path / "run" / "config.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match="is not a run folder"):
        run(tmp_path / "run")


def test_files_of_others_inside_a_seed_or_the_staging_folder_are_kept(tmp_path: Path) -> None:
    run(tmp_path / "run", seeds=(0,))
    inside = thesis(tmp_path / "run" / "seed-0")
    with pytest.raises(UserError, match=r"thesis\.txt"):
        run(tmp_path / "run", lr=0.5)
    assert inside.exists()
    staged = thesis(tmp_path / ".other.partial")
    with pytest.raises(UserError, match=r"thesis\.txt"):
        run(tmp_path / "other")
    assert staged.exists()


def test_saving_does_not_replace_weights_of_others(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    weights = tmp_path / "model" / "weights.safetensors"
    weights.write_text("of others")
    data = split(load_dataset("karate"), "stratified", 0)
    classifier = NodeClassifier("MLP", epochs=2).fit(data)
    with pytest.raises(UserError, match="is not a saved model"):
        classifier.save(tmp_path / "model")
    assert weights.read_text() == "of others"


class Interrupted(InProcess):
    """Stop after the first two runs."""

    def run(self, batches, work, on_epoch):
        yield from super().run(batches[:2], work, on_epoch)
        raise KeyboardInterrupt


def test_leftovers_of_killed_runs_are_not_published(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_quietly(experiment(), tmp_path / "run", Interrupted())
    staging = tmp_path / ".run.partial"
    (staging / ".seed-2.k1ll3d00.partial").mkdir()
    (staging / ".seed-2.k1ll3d00.partial" / "metrics.json").write_text("{")
    (staging / ".summary.json.1234.partial").write_text("{")
    (staging / "seed-2.checkpoint").write_text("unfinished")
    run(tmp_path / "run", resume=True)
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert not [name for name in names if name.startswith(".") or name.endswith(".checkpoint")]
    assert {"seed-0", "seed-1", "seed-2", "summary.json"} <= set(names)


def test_a_finished_run_that_was_damaged_is_trained_again(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run_quietly(experiment(), tmp_path / "run", Interrupted())
    (tmp_path / ".run.partial" / "seed-1" / "metrics.json").write_bytes(b"")
    assert numbers(run(tmp_path / "run", resume=True)) == numbers(whole)
    assert verify_run(tmp_path / "run")[1] == {}


def test_the_summary_has_the_means_without_dead_runs() -> None:
    metrics = [
        {"seed": 4, "test_accuracy": 0.2, "dead": 1, "restarts": 1},
        {"seed": 5, "test_accuracy": 0.7, "restarts": 1},
        {"seed": 6, "test_accuracy": 0.9},
    ]
    found = dead_run_summary(metrics, ["test_accuracy"])
    assert (found["dead_seeds"], found["restarted_seeds"]) == ([4], [4, 5])
    assert found["without_dead"]["test_accuracy"]["mean"] == pytest.approx(0.8)
    assert dead_run_summary(metrics[2:], ["test_accuracy"]) == {}
