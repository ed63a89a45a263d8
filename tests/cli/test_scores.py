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
    assert status == 0
    assert json.loads(out)["protocol"] == protocol
