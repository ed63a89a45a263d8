"""Tables of graphs that the user brings: which graphs, which metric, and when there is no table."""

from pathlib import Path

import numpy as np
import pytest
import torch

from nfgnn import NodeClassifier, split
from nfgnn.data import export_graph, mixed_graph
from nfgnn.errors import UserError
from nfgnn.paper.find_graph import find_graph
from nfgnn.paper.reproduce import collect, run_missing
from nfgnn.paper.table_cells import make_tables
from nfgnn.paper.table_plan import make_plan
from nfgnn.paper.table_writer import markdown, values_csv
from nfgnn.progress import Progress
from nfgnn.training import InProcess, Records

QUICK = {"epochs": 10}


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    """A folder of three graphs: balanced classes, a rare class, and one with a split."""
    folder = tmp_path / "graphs"
    balanced = mixed_graph(150, 3, num_features=6, seed=1)
    export_graph(balanced, folder / "balanced", "csv")
    rare = mixed_graph(300, 2, num_features=6, seed=2)
    rare.y = (torch.arange(300) % 10 == 0).long()
    export_graph(rare, folder / "rare.npz", "npz")
    export_graph(split(balanced, "stratified", 0), folder / "with-split.npz", "npz")
    (folder / "notes.txt").write_text("not a graph")
    return folder


def test_a_folder_stands_for_its_graphs_each_with_protocol_and_metric(graphs: Path) -> None:
    plan = make_plan("own", [str(graphs)])
    shown = {
        Path(column.dataset).stem: (column.protocol, plan.metrics[column])
        for column in plan.columns
    }
    assert shown == {
        "balanced": ("stratified", ("test_accuracy",)),
        "rare": ("stratified", ("test_roc_auc",)),
        "with-split": ("public", ("test_accuracy",)),
    }
    notes = "\n".join(plan.graph_notes)
    assert "rare: 300 nodes" in notes
    assert "always predicting the largest class has 90.0 % accuracy and 50 % ROC-AUC" in notes
    assert "with-split: 150 nodes" in notes
    assert "one split, so that a seed changes only the weights" in notes
    selected = {Path(c.dataset).stem: plan.configs["MLP", c].training.select for c in plan.columns}
    assert selected == {"balanced": "loss", "rare": "metric", "with-split": "loss"}
    assert plan.file == "own"
    assert make_plan("own", [str(graphs)], runs=3).file == "own-3runs"


def test_a_graph_joins_a_table_of_the_paper_by_its_own_metric(graphs: Path) -> None:
    plan = make_plan("inductive", [str(graphs / "rare.npz"), "cora"])
    rare, cora = plan.columns
    assert rare.protocol == cora.protocol == "inductive"
    assert plan.metrics[rare] == ("observed_roc_auc", "unobserved_roc_auc")
    assert plan.metrics[cora] == ("observed_accuracy", "unobserved_accuracy")


def test_the_table_has_the_scores_of_the_runs(graphs: Path, tmp_path: Path) -> None:
    plan = make_plan("own", [str(graphs)], ["MLP", "GCN"], runs=2, settings=QUICK)
    with Records(tmp_path / "records.sqlite") as records:
        executor = InProcess(single_thread=True)
        quiet = Progress("", quiet=True)
        assert run_missing([plan], records, None, executor, quiet, "cpu") == []
        tables = make_tables(plan, collect(plan, None, records), "command")
    by_metric = {table.metric: table for table in tables}
    assert {table.heading(c) for table in tables for c in table.columns} >= {"rare"}
    (column,) = by_metric["test_roc_auc"].columns
    entry = by_metric["test_roc_auc"].rows["MLP"][0]
    data = find_graph(column.dataset, None).data
    for seed, value in entry.values.items():
        parts = split(data, "stratified", seed)
        classifier = NodeClassifier.from_config(plan.configs["MLP", column], seed, "cpu").fit(parts)
        scores = classifier.predict_proba(parts)[parts.test_mask, 1].numpy()
        expected = 100 * auc(scores, parts.y[parts.test_mask].numpy())
        assert value == pytest.approx(expected, abs=1e-3)
    text = markdown(tables)
    assert "## Area under the ROC curve" in text
    assert "balanced (stratified) | with-split (public)" in text
    assert str(graphs) not in text + values_csv(tables)


def auc(score: np.ndarray, y: np.ndarray) -> float:
    """The share of pairs of a positive and a negative node in the right order."""
    difference = score[y == 1][:, None] - score[y == 0][None]
    return float(np.mean((difference > 0) + 0.5 * (difference == 0)))


def test_mistakes_are_named(tmp_path: Path, graphs: Path) -> None:
    with pytest.raises(UserError, match="pass them or their folder with --datasets"):
        make_plan("own")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="empty: contains no graph"):
        make_plan("full", [str(tmp_path / "empty")])
    (graphs / "damaged.npz").write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"damaged\.npz"):
        make_plan("own", [str(graphs)])


def test_a_folder_of_that_name_is_not_the_data_set(graphs: Path) -> None:
    (graphs / "balanced").rename(graphs / "cora")
    (column,) = make_plan("own", [f"{graphs}/cora"]).columns
    assert column.dataset == str(graphs / "cora")
