"""Scores that can be trusted: the commands that misled on unbalanced graphs."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from nfgnn.data import load_dataset, split
from nfgnn.training import METRICS, find_metric

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
    full = ("--protocol", "full")
    status, out, err = call("train", "minesweeper", *root, *full, *QUICK, "--json")
    assert (status, out) == (2, "")
    assert "use the protocol 'public'" in err
    status, out, _ = call("train", "minesweeper", *root, *QUICK, "--json")
    result = json.loads(out)
    assert (status, result["protocol"]) == (0, "public")
    file = data_root / "HeterophilousGraphDataset/minesweeper/raw/minesweeper.npz"
    status, out, _ = call("train", str(file), *QUICK, "--json")
    result = json.loads(out)
    assert (result["protocol"], result["metric"]) == ("public", "roc_auc")
    assert result["majority"]["test_accuracy"] == pytest.approx(0.8)
    assert result["class_counts"]["test"] == [2000, 500]


@pytest.mark.figures
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
    text = " ".join(out.split())
    warning = "the model never predicts 'fraud' (18 labelled nodes, 3 of them for testing): try"
    assert f"warning: {warning} --metric macro_f1" in text
    report = next((tmp_path / "runs").glob("*/report.md")).read_text()
    assert f"\nWarning: {warning} --metric macro_f1.\n" in report


def test_a_class_without_test_nodes_is_named(call, data_root: Path) -> None:
    status, out, _ = call("train", "texas", "--root", str(data_root), *QUICK)
    assert status == 0
    assert "warning: no val or test node of class 1, 2" in out


def strict(text: str) -> dict:
    """Parse JSON that has neither NaN nor Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def write_unbalanced_graph(path: Path, rng: np.random.Generator) -> None:
    """Write a random graph: 2 to 12 classes, one of 0.5 to 50 % of the nodes, some unlabelled."""
    num_classes = int(rng.integers(2, 13))
    nodes = int(rng.integers(60, 400))
    share = float(np.exp(rng.uniform(np.log(0.005), np.log(0.5))))
    sizes = np.full(num_classes, (1 - share) / (num_classes - 1))
    sizes[0] = share
    labels = rng.choice(num_classes, nodes, p=sizes)
    labels[: num_classes + 1] = np.append(np.arange(num_classes), 0)  # every class has a node
    labels[rng.random(nodes) < rng.choice([0, 0.3])] = -1
    features = rng.standard_normal((nodes, 4)) + labels[:, None]
    edges = rng.integers(0, nodes, (3 * nodes, 2))
    np.savez(path, node_features=features, node_labels=labels, edges=edges)


@pytest.mark.parametrize("seed", range(8))
def test_scores_of_random_graphs_can_be_trusted(call, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    write_unbalanced_graph(tmp_path / "graph.npz", rng)
    data = load_dataset(tmp_path / "graph.npz")
    metric = find_metric(str(rng.choice(list(METRICS))))
    quick = ("--model", "MLP", "--runs", "1", "--set", "epochs=2", "--metric", metric.name)
    for protocol in ("stratified", "full", "random"):
        masks = split(data, protocol, 0)
        counts = {}
        for part in ("train", "val", "test"):
            labels = masks.y[masks[f"{part}_mask"]]
            counts[part] = np.bincount(labels, minlength=data.num_classes)
        status, out, err = call("train", "graph.npz", "--protocol", protocol, *quick, "--json")
        assert "Warning" not in err
        scored = [counts["val"], counts["test"]]
        if metric.needs_every_class and min(sizes.min() for sizes in scored) == 0:
            assert (status, out) == (2, "")
            assert f"{metric.title} is not defined" in err
            continue
        assert status == 0, err
        result = strict(out)
        assert result["class_counts"] == {part: list(sizes) for part, sizes in counts.items()}
        for part, sizes in counts.items():
            largest = sizes.max() / sizes.sum()
            assert result["majority"][f"{part}_accuracy"] == pytest.approx(largest)
            missing = [name for name, size in zip(data.class_names, sizes) if size == 0]
            assert result["missing_classes"].get(part, []) == (missing if part != "train" else [])
            defined = metric.undefined(sizes.tolist()) is None
            assert (f"{part}_{metric.name}" in result) == defined
            assert (f"{part}_{metric.name}" in result["majority"]) == defined
        report = strict((tmp_path / result["run"] / "report.json").read_text())
        assert [row["support"] for row in report["classes"]] == list(counts["test"])


def test_a_search_on_a_part_without_a_class_is_refused(call, tmp_path: Path) -> None:
    write_fraud_table(tmp_path / "fraud")
    quick = ("--model", "MLP", "--trials", "1", "--seeds", "0", "--set", "epochs=2", "--json")
    status, out, err = call("tune", "fraud", "--protocol", "full", *quick)
    assert (status, out) == (2, "")
    assert "use the protocol 'stratified'" in err
    status, out, _ = call("tune", "fraud", *quick)
    assert strict(out)["protocol"] == "stratified"
