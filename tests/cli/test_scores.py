"""Scores that can be trusted: the commands that misled on unbalanced graphs."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

QUICK = ("--model", "MLP", "--preset", "none", "--runs", "1", "--set", "epochs=10")


def write_fraud_table(folder: Path, split: bool = False, nodes: int = 600) -> None:
    """Write a graph with 3 % positive nodes as tables."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(nodes) < 0.03 * nodes, "fraud", "honest")
    features = rng.standard_normal((nodes, 3)) + (labels == "fraud")[:, None]
    parts = np.resize(["train", "train", "val", "test"], nodes)
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", "a", "b", "c"] + ["split"] * split)
        for node in range(nodes):
            row = [node, labels[node], *features[node].round(3)]
            writer.writerow(row + [parts[node]] * split)
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows(rng.integers(0, nodes, (2 * nodes, 2)).tolist())


@pytest.mark.parametrize(("split", "protocol"), [(True, "public"), (False, "stratified")])
def test_own_graphs_use_their_own_split_or_a_stratified_one(
    call, tmp_path: Path, split: bool, protocol: str
) -> None:
    write_fraud_table(tmp_path / "fraud", split)
    status, out, _ = call("train", "fraud", *QUICK, "--json")
    result = json.loads(out)
    assert status == 0
    assert (result["protocol"], result["metric"]) == (protocol, "roc_auc")
    assert result["classes"] == ["fraud", "honest"]
    assert all(min(sizes) > 0 for sizes in result["class_counts"].values())
    assert result["majority"]["test_accuracy"] == pytest.approx(0.97, abs=0.01)
    assert result["majority"]["test_roc_auc"] == 0.5


def test_a_score_of_a_missing_class_is_refused_before_training(call, tmp_path: Path) -> None:
    write_fraud_table(tmp_path / "fraud")
    status, out, err = call("train", "fraud", "--protocol", "full", *QUICK, "--json")
    assert (status, out) == (2, "")
    assert "no node of class fraud, so ROC-AUC is not defined" in err
    assert "use the protocol 'stratified'" in err
    assert "Warning" not in err
    assert not (tmp_path / "runs").exists()


def test_minesweeper_by_name_and_by_file(call, data_root: Path, tmp_path: Path) -> None:
    root = ("--root", str(data_root))
    status, out, err = call("train", "minesweeper", *root, *QUICK, "--json")
    assert (status, out) == (2, "")
    assert "use the protocol 'public'" in err
    file = data_root / "HeterophilousGraphDataset/minesweeper/raw/minesweeper.npz"
    status, out, _ = call("train", str(file), *QUICK, "--json")
    result = json.loads(out)
    assert (result["protocol"], result["metric"]) == ("public", "roc_auc")
    assert result["majority"]["test_accuracy"] == pytest.approx(0.8)
    assert result["class_counts"]["test"] == [2000, 500]


def test_the_table_shows_the_majority_the_classes_and_constant_predictions(
    call, tmp_path: Path
) -> None:
    write_fraud_table(tmp_path / "fraud")
    status, out, err = call("train", "fraud", *QUICK, "--set", "lr=1e-9", "--out", "run")
    assert status == 0
    assert "test ROC-AUC %" in out
    assert "majority" in out
    assert "fraud: 11/4/3 · honest: 349/116/117" in out
    assert "run/report.md" in out
    assert "test ROC-AUC" in err
    assert (tmp_path / "run" / "report.png").read_bytes().startswith(b"\x89PNG")
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert [row["support"] for row in report["classes"]] == [3, 117]


def test_constant_predictions_are_reported(call, tmp_path: Path) -> None:
    write_fraud_table(tmp_path / "fraud")
    _, out, _ = call("train", "fraud", *QUICK[:-1], "epochs=40", "--set", "lr=0.01")
    assert "warning: every test node is predicted as honest (seed 0)" in out


def test_a_class_without_test_nodes_is_named(call, data_root: Path) -> None:
    status, out, _ = call("train", "texas", "--root", str(data_root), *QUICK)
    assert status == 0
    assert "warning: no val or test node of class 1, 2" in out
