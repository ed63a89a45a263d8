"""Terms and predictions of new nodes equal those on the whole extended graph."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from conftest import random_graph
from helpers.new_nodes import GraphWithNewNodes, graphs_with_new_nodes
from hypothesis import given, settings
from pyarrow import csv
from torch import Tensor

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.cli import main
from nfgnn.data import load_new_nodes
from nfgnn.errors import UserError
from nfgnn.spectral import resolve_basis, scaled_laplacian
from nfgnn.store import NewNodes, terms_of_new_nodes
from nfgnn.training.predict_new_nodes import predict_new_nodes


@given(case=graphs_with_new_nodes(max_new=6, max_edges=15, max_K=6, min_lambda=1.7))
@settings(max_examples=150, deadline=None)
def test_terms_equal_those_of_the_extended_graph(case: GraphWithNewNodes) -> None:
    graph = scaled_laplacian(case.edge_index, case.weight, len(case.x))
    features = case.x.__getitem__
    ours = terms_of_new_nodes(
        graph, features, case.new, case.basis, case.K, case.self_loops, case.lambda_max
    )
    torch.testing.assert_close(ours, case.expected_terms(), rtol=1e-4, atol=1e-5)


def test_only_features_within_the_ball_are_read() -> None:
    """On a long path, three nodes are within two edges of the new node."""
    n = 1000
    path = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    x, seen = torch.randn(n, 2), []

    def features(nodes: Tensor) -> Tensor:
        seen.extend(nodes.tolist())
        return x[nodes]

    new = NewNodes(torch.randn(1, 2), torch.tensor([[500], [n]]))
    graph = scaled_laplacian(torch.cat([path, path.flip(0)], 1), None, n)
    terms_of_new_nodes(graph, features, new, resolve_basis("chebyshev"), 2)
    assert sorted(seen) == [499, 500, 501]


def test_a_new_node_without_edges_has_the_terms_of_an_isolated_node() -> None:
    new = NewNodes(torch.tensor([[1.0, 2.0]]), torch.empty(2, 0, dtype=torch.long))
    graph = scaled_laplacian(random_graph(10, 0.3, 0), None, 10)
    terms = terms_of_new_nodes(
        graph, lambda nodes: torch.randn(nodes.numel(), 2), new, resolve_basis("chebyshev"), 4
    )
    torch.testing.assert_close(terms[0, :, 0], torch.tensor([1.0, 0.0, -1.0, 0.0, 1.0]))  # T_k(0)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ([[0], [12]], r"outside of 0…11"),
        ([[0, 10], [1, 3]], "connects two nodes of the existing graph"),
    ],
)
def test_invalid_edges_are_rejected(ends: list[list[int]], message: str) -> None:
    new = NewNodes(torch.randn(2, 2), torch.tensor(ends))
    with pytest.raises(UserError, match=message):
        new.directed_edges(10)


@pytest.fixture(params=["strings", "numbers"])
def known(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Write a graph as tables: the first 190 nodes, the last ten, and all of them."""
    data = load_dataset("mixed", num_nodes=200)
    name = "node {}" if request.param == "strings" else "{}"
    ids = np.array([name.format(i) for i in range(200)])
    features = {f"x{i}": column for i, column in enumerate(data.x.to_dense().T.numpy())}
    nodes = pa.table(
        {"id": ids, "label": [data.class_names[c] for c in data.y.tolist()], **features}
    )
    once = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].numpy()
    for folder, some in (
        ("old", (once < 190).all(0)),
        ("new", (once >= 190).any(0)),
        ("whole", once[0] >= 0),
    ):
        (tmp_path / folder).mkdir()
        part = {"old": nodes.slice(0, 190), "new": nodes.slice(190), "whole": nodes}[folder]
        csv.write_csv(part, tmp_path / folder / "nodes.csv")
        ends = ids[once[:, some]]
        csv.write_csv(
            pa.table({"source": ends[1], "target": ends[0]}), tmp_path / folder / "edges.csv"
        )
    return tmp_path


def run(*arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["nfgnn", *arguments])
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0)
    return 0


def test_predictions_equal_those_on_the_whole_graph(
    known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(known)
    assert (
        run("precompute", "old", "--out", "store", "--K", "3", "--rows", "all", "--self-loops") == 0
    )
    quick = ["--protocol", "stratified", "--runs", "1", "--set", "epochs=20"]
    assert run("train", "store", "--out", "run", *quick) == 0
    assert run("predict", "run", "whole", "-o", "whole.csv") == 0
    assert run("predict", "run", "new", "--extends", "store", "-o", "from-store.csv") == 0
    assert run("predict", "run", "new", "--extends", "old", "-o", "from-graph.csv") == 0
    expected = csv.read_csv("whole.csv").slice(190)
    for file in ("from-store.csv", "from-graph.csv"):
        found = csv.read_csv(file)
        assert found["id"].to_pylist() == expected["id"].to_pylist()
        assert found["predicted"].to_pylist() == expected["predicted"].to_pylist()
        np.testing.assert_allclose(found["probability"], expected["probability"], rtol=1e-4)
    assert run("predict", "run", "store", "-o", "stored.csv") == 0
    assert csv.read_csv("stored.csv").num_rows == 190


def reversed_columns(folder: Path, out: Path) -> Path:
    """Copy the tables of a graph, with the columns of the nodes in the opposite order."""
    out.mkdir()
    nodes = csv.read_csv(folder / "nodes.csv")
    csv.write_csv(nodes.select(nodes.column_names[::-1]), out / "nodes.csv")
    (out / "edges.csv").write_bytes((folder / "edges.csv").read_bytes())
    return out


@pytest.mark.parametrize("turned", ["old", "new"])
def test_columns_in_another_order_give_the_same_predictions(known: Path, turned: str) -> None:
    graph = split(load_dataset(known / "old"), "stratified", 0)
    classifier = NodeClassifier("ScalableNFGNN", K=3, epochs=5, device="cpu").fit(graph)
    new = load_new_nodes(known / "new", graph)
    expected = predict_new_nodes(classifier, graph, new)
    whole = classifier.predict_proba(load_dataset(known / "whole"))
    torch.testing.assert_close(expected, whole[190:], rtol=1e-4, atol=1e-5)
    other = reversed_columns(known / turned, known / "turned")
    if turned == "new":
        assert torch.equal(load_new_nodes(other, graph).x, new.x)
        return
    graph = load_dataset(other)
    new = load_new_nodes(known / "new", graph)
    assert new.feature_names == graph.feature_names
    torch.testing.assert_close(predict_new_nodes(classifier, graph, new), expected)
    del new.feature_names  # without names, the order is that of the graph
    torch.testing.assert_close(predict_new_nodes(classifier, graph, new), expected)
    assert "feature_names" not in new


def test_the_command_matches_columns_by_name(known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(known)
    reversed_columns(Path("old"), Path("turned"))
    quick = ["--protocol", "stratified", "--runs", "1", "--set", "epochs=5", "--set", "K=3"]
    assert run("train", "old", "--model", "ScalableNFGNN", "--out", "run", *quick) == 0
    assert run("predict", "run", "new", "--extends", "old", "-o", "old.csv") == 0
    assert run("predict", "run", "new", "--extends", "turned", "-o", "turned.csv") == 0
    expected = csv.read_csv("old.csv")
    found = csv.read_csv("turned.csv")
    assert found["predicted"].to_pylist() == expected["predicted"].to_pylist()
    np.testing.assert_allclose(found["probability"], expected["probability"], rtol=1e-4)


def test_additions_that_do_not_fit_are_one_sentence(known: Path) -> None:
    graph = load_dataset(known / "old")
    nodes = csv.read_csv(known / "new" / "nodes.csv")
    with pytest.raises(UserError, match="is already a node of the graph"):
        load_new_nodes(known / "old", graph)
    csv.write_csv(nodes.drop_columns(["x3"]), known / "new" / "nodes.csv")
    with pytest.raises(
        UserError, match="the graph has 32 features, the new nodes have 31; missing: x3"
    ):
        load_new_nodes(known / "new", graph)
    csv.write_csv(nodes.slice(1), known / "new" / "nodes.csv")
    with pytest.raises(
        UserError, match=r"is not in nodes\.csv or the known graph; add the node or remove the edge"
    ):
        load_new_nodes(known / "new", graph)


def test_models_that_need_whole_graphs_are_rejected(known: Path) -> None:
    graph = load_dataset(known / "old")
    classifier = NodeClassifier("NFGNN", epochs=1, device="cpu").fit(split(graph, "stratified", 0))
    with pytest.raises(UserError, match="NFGNN needs the whole graph"):
        predict_new_nodes(classifier, graph, load_new_nodes(known / "new", graph))
