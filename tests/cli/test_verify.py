"""``nfgnn verify``: every damaged file is reported, with status 2."""

import json
import shutil
from pathlib import Path

import pytest
from helpers.small_stores import graph, small_store

V1 = Path(__file__).parents[1] / "golden" / "run_folder_v1"
QUICK = ("--protocol", "stratified", "--runs", "2", "--set", "epochs=5", "--set", "K=3")


def flip(path: Path) -> None:
    """Flip one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def test_a_run_folder_is_verified(call, tmp_path: Path) -> None:
    call("train", "karate", *QUICK, "--out", "run")
    status, out, _ = call("verify", "run")
    assert (status, out) == (0, "run: 18 files, all intact\n")
    flip(tmp_path / "run" / "seed-0" / "weights.safetensors")
    flip(tmp_path / "run" / "seed-1" / "history.csv")
    status, out, _ = call("verify", "run", "--json")
    assert status == 2
    answer = json.loads(out)
    assert [entry["file"] for entry in answer["damaged"]] == [
        "seed-0/weights.safetensors",
        "seed-1/history.csv",
    ]
    status, out, _ = call("verify", "run")
    assert status == 2
    assert "run/seed-1/history.csv: is damaged" in out
    assert "restore it from a copy" in out


def test_a_saved_model_is_verified(call, tmp_path: Path) -> None:
    call("train", "karate", *QUICK, "--out", "run")
    status, out, _ = call("verify", "run/seed-0")
    assert (status, out) == (0, "run/seed-0: 6 files, all intact\n")


def test_an_older_run_folder_is_readable(call) -> None:
    status, out, _ = call("verify", str(V1))
    assert status == 0
    assert "predates checksums" in out


def test_a_store_is_verified(call, tmp_path: Path) -> None:
    small_store(tmp_path / "store", graph())
    status, out, _ = call("verify", "store")
    assert (status, out) == (0, "store: 4 files, all intact\n")
    for name in ("terms", "y", "nodes"):
        flip(tmp_path / "store" / f"{name}.npy")
    status, out, _ = call("verify", "store", "--json")
    assert status == 2
    answer = json.loads(out)
    assert answer["kind"] == "store"
    assert {entry["file"] for entry in answer["damaged"]} == {"terms.npy", "y.npy", "nodes.npy"}
    assert all("is damaged" in entry["problem"] for entry in answer["damaged"])


@pytest.mark.parametrize("name", ["y", "terms"])
@pytest.mark.parametrize("command", ["train", "predict"])
def test_training_and_prediction_refuse_a_damaged_store(
    command: str, name: str, call, tmp_path: Path
) -> None:
    """Zeroed labels used to give a test accuracy of 100 %."""
    small_store(tmp_path / "store", graph())
    model = ("--model", "ScalableNFGNN", "--protocol", "full", "--set", "epochs=3")
    assert call("train", "store", *model, "--out", "run")[0] == 0
    path = tmp_path / "store" / f"{name}.npy"
    content = path.read_bytes()
    path.write_bytes(content[:128] + bytes(len(content) - 128))
    from nfgnn.training.run import _load

    _load.cache_clear()  # as in a new process
    arguments = {
        "train": ("store", *model, "--out", "other"),
        "predict": ("run", "store", "-o", "p.csv"),
    }
    status, _, err = call(command, *arguments[command])
    assert status == 2
    assert f"{name}.npy: block 0 of 1 is damaged; precompute the store again" in err
    assert not (tmp_path / "other").exists()
    assert not (tmp_path / "p.csv").exists()


def test_predict_refuses_damaged_weights(call, tmp_path: Path) -> None:
    shutil.copytree(V1, tmp_path / "run")
    call("train", "karate", *QUICK, "--out", "run", "--overwrite")
    flip(tmp_path / "run" / "seed-0" / "weights.safetensors")
    status, _, err = call("predict", "run", "karate", "--seed", "0", "-o", "p.csv")
    assert status == 2
    assert "weights.safetensors: is damaged" in err
    assert not (tmp_path / "p.csv").exists()


def test_other_paths_are_refused(call, tmp_path: Path) -> None:
    status, _, err = call("verify", "nothing")
    assert status == 2
    assert "is not a folder" in err
    (tmp_path / "folder").mkdir()
    status, _, err = call("verify", "folder")
    assert status == 2
    assert "neither a store nor a run folder" in err
