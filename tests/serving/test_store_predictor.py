"""Predictions from an open store equal those on the whole extended graph."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.command_line import main_status
from helpers.serving_graphs import friends, person, write_people
from helpers.store_graphs import make_store, small_graph
from pyarrow import csv
from torch_geometric.data import Data

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.errors import UserError
from nfgnn.serving import NewNode, StorePredictor, serves
from nfgnn.store import Store
from nfgnn.training import load_run, predict_new_nodes


def new_person(i: int) -> NewNode:
    return NewNode(person(i), [f"p{j}" for j in friends(i)], id=f"p{i}")


@pytest.mark.parametrize("count", [1, 3, 20])
def test_predictions_equal_those_on_the_extended_graph(
    count: int, served: Path, predictor: StorePredictor, tmp_path: Path
) -> None:
    write_people(tmp_path / "all", np.arange(120 + count))
    classifier = load_run(served / "run", device="cpu")
    whole = load_dataset(tmp_path / "all", encoding=classifier.feature_encoding_)
    expected = classifier.predict_proba(whole)[120:]
    found = predictor.predict([new_person(i) for i in range(120, 120 + count)])
    shares = [list(prediction.probabilities.values()) for prediction in found]
    np.testing.assert_allclose(shares, expected, atol=1e-5)
    for prediction, share in zip(found, expected):
        assert prediction.predicted == predictor.class_names[int(share.argmax())]
        ordered = share.sort().values
        assert prediction.margin == pytest.approx(float(ordered[-1] - ordered[-2]), abs=1e-5)
    assert [prediction.id for prediction in found] == [f"p{120 + i}" for i in range(count)]


def test_models_with_a_sketch_equal_those_on_the_graph(tmp_path: Path) -> None:
    data = small_graph()
    store = make_store(data, tmp_path / "s", rows="all", serve=True, sketch=8)
    classifier = NodeClassifier("ScalableNFNet", epochs=1, device="cpu").fit(store.labels())
    new = Data(x=torch.randn(2, 7), edge_index=torch.tensor([[2, 7, 61], [60, 60, 60]]))
    found = StorePredictor(classifier, store).predict_proba(new)
    torch.testing.assert_close(found, predict_new_nodes(classifier, data, new), atol=1e-5, rtol=0)


def test_features_can_be_a_list(predictor: StorePredictor) -> None:
    assert predictor.existing.feature_names == [
        *("age", "income", "city=Bonn", "city=Oslo", "city=Rome"),
    ]
    by_name = NewNode({"age": 30.0, "income": 2.0, "city": "Rome"}, ["p3"])
    by_place = NewNode([30.0, 2.0, 0.0, 0.0, 1.0], ["p3"])
    assert predictor.predict([by_name]) == predictor.predict([by_place])
    unknown = NewNode({"age": 30.0, "income": 2.0, "city": "Kyiv"}, ["p3"])
    assert predictor.predict([unknown]) == predictor.predict(
        [replace(by_place, features=[30.0, 2.0, 0.0, 0.0, 0.0])]
    )
    assert predictor.predict([]) == []


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([NewNode([1.0])], "new node 1 has 1 features, but the graph has 5"),
        ([NewNode([1, 2, 3, 4, float("nan")])], "is not a finite number"),
        ([NewNode([1, 2, 3, 4, 1e300])], "is not a finite number"),
        ([NewNode([0] * 5, ["p3", "nobody"])], "the neighbour 'nobody' is neither"),
        ([NewNode([0] * 5, ["p3", "p3"])], "lists a neighbour twice"),
        ([NewNode([0] * 5, ["p3"], [1, 2])], "2 weights for 1 neighbours"),
        ([NewNode([0] * 5, ["p3"], [-1])], "not a positive number"),
        ([NewNode([0] * 5, ["p3"], [float("nan")])], "not a positive number"),
        ([NewNode([0] * 5, id="p3")], "'p3' is already a node of the graph"),
        ([NewNode([0] * 5, id="x"), NewNode([0] * 5, id="x")], "two new nodes have the id 'x'"),
        ([NewNode([0] * 5), NewNode({"age": 1})], "use one of them"),
        ([NewNode({"age": 1, "income": "high", "city": "Rome"})], "income"),
        ([NewNode({"age": [1], "city": {"a": 1}})], "features"),
    ],
)
def test_hostile_nodes_get_one_sentence(
    nodes: list[NewNode], message: str, predictor: StorePredictor
) -> None:
    with pytest.raises(UserError, match=message):
        predictor.predict(nodes)


def test_threads_share_a_predictor(predictor: StorePredictor) -> None:
    nodes = [NewNode([i, 1, 0, 0, 1], [f"p{i}", f"p{i + 50}"]) for i in range(12)]
    expected = [predictor.predict([node]) for node in nodes]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(predictor.predict, [[node] for node in nodes]))
    assert found == expected


def test_the_command_reads_only_the_store(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the source graph, the predictions are those on the whole extended graph."""
    shutil.copytree(served / "store", tmp_path / "store")
    shutil.copytree(served / "run", tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path / "new", np.arange(120, 125))
    write_people(tmp_path / "all", np.arange(125))
    moved = served / "people"
    moved.rename(served / "moved")
    try:
        command = ("predict", "run", "new", "--extends", "store", "--device", "cpu")
        assert main_status(*command, "-o", "new.csv") == 0
        assert main_status("predict", "run", "store", "-o", "old.csv", "--device", "cpu") == 0
    finally:
        (served / "moved").rename(moved)
    assert main_status("predict", "run", "all", "-o", "all.csv", "--device", "cpu") == 0
    everything = csv.read_csv("all.csv")
    found = csv.read_csv("new.csv")
    assert found["id"].to_pylist() == [f"p{i}" for i in range(120, 125)]
    np.testing.assert_allclose(found["probability"], everything["probability"][120:], atol=1e-5)
    assert csv.read_csv("old.csv")["id"].to_pylist() == [f"p{i}" for i in range(120)]


def test_models_and_stores_that_do_not_fit_are_rejected(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(served / "store")

    def fitted(model: str, **settings: object) -> NodeClassifier:
        data = split(load_dataset(served / "people"), "stratified", 0)
        return NodeClassifier(model, epochs=1, device="cpu", **settings).fit(data)

    def refused(make: Callable[[], StorePredictor], message: str) -> None:
        with pytest.raises(UserError, match=message):
            make()

    refused(lambda: StorePredictor(fitted("MLP"), store), "MLP needs the whole graph")
    other = fitted("ScalableNFGNN", K=3, features="standard")
    refused(lambda: StorePredictor(other, store), "needs terms with K = 3")
    other = fitted("ScalableNFGNN", K=4, features="raw", rank=1)
    refused(lambda: StorePredictor(other, store), "scaled in another way")
    assert not serves(other, store)
    monkeypatch.chdir(tmp_path)
    people = str(served / "people")
    terms = ("--K", "4", "--rows", "all", "--features", "standard", "--device", "cpu")
    assert main_status("precompute", people, "--out", "plain", *terms) == 0
    plain = Store.open("plain")
    trained = load_run(served / "run", device="cpu")
    refused(lambda: StorePredictor(trained, plain), "does not hold the graph")
