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
from helpers.store_graphs import make_store, small_graph, write_tables
from pyarrow import csv
from torch_geometric.data import Data

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.data import open_large
from nfgnn.errors import UserError
from nfgnn.serving import NewNode, StorePredictor, serves
from nfgnn.store import MemorySource, Settings, Store, precompute
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


def test_new_nodes_with_other_features_are_refused(tmp_path: Path) -> None:
    data = small_graph()
    store = make_store(data, tmp_path / "s", rows="all", serve=True)
    classifier = NodeClassifier("ScalableNFGNN", epochs=1, device="cpu")
    new = Data(x=torch.randn(1, 3), edge_index=torch.tensor([[2], [60]]))
    with pytest.raises(UserError, match="this NodeClassifier is not fitted yet"):
        predict_new_nodes(classifier, data, new)
    classifier.fit(store.labels())
    message = "the graph has 3 features, but the model was trained on 7"
    with pytest.raises(UserError, match=message):
        predict_new_nodes(classifier, data, new)
    with pytest.raises(UserError, match=message):
        StorePredictor(classifier, store).predict_proba(new)


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


@pytest.fixture
def turned(tmp_path: Path) -> tuple[NodeClassifier, Path, Path]:
    """Return a model of a graph as tables, these, and the tables with reversed columns."""
    folder = write_tables(tmp_path / "g", "csv")
    other = tmp_path / "turned"
    shutil.copytree(folder, other)
    nodes = csv.read_csv(folder / "nodes.csv")
    csv.write_csv(nodes.select(nodes.column_names[::-1]), other / "nodes.csv")
    data = split(load_dataset(folder), "stratified", 0)
    settings = {"K": 2, "epochs": 3, "features": "raw", "device": "cpu"}
    return NodeClassifier("ScalableNFGNN", **settings).fit(data), folder, other


def served_store(folder: Path, out: Path) -> Store:
    """Precompute tables in blocks, with the graph."""
    large = open_large(folder)
    assert large is not None
    return precompute(large, out, Settings(K=2, features="raw", rows="all", serve=True))


def test_features_of_a_store_from_blocks_are_matched_by_name(
    turned: tuple[NodeClassifier, Path, Path], tmp_path: Path
) -> None:
    classifier, folder, _ = turned
    predictor = StorePredictor(classifier, served_store(folder, tmp_path / "s"))
    values = {f"x{i}": i / 3 for i in range(7)}
    by_place = predictor.predict([NewNode(list(values.values()), ["3"])])
    assert predictor.predict([NewNode(values, ["3"])]) == by_place
    assert predictor.predict([NewNode(dict(reversed(values.items())), ["3"])]) == by_place
    new = Data(x=torch.tensor([[*values.values()]]), edge_index=torch.tensor([[3], [60]]))
    expected = predictor.predict_proba(new)
    new.x = new.x.flip(1)
    new.feature_names = [f"x{6 - i}" for i in range(7)]
    assert torch.equal(predictor.predict_proba(new), expected)


def test_a_store_of_reordered_columns_is_refused(
    turned: tuple[NodeClassifier, Path, Path], tmp_path: Path
) -> None:
    classifier, folder, other = turned
    right = served_store(folder, tmp_path / "right")
    wrong = served_store(other, tmp_path / "wrong")
    assert serves(classifier, right)
    assert not serves(classifier, wrong)
    with pytest.raises(UserError, match=r"wrong were computed from the features in another order"):
        StorePredictor(classifier, wrong)


def test_the_command_reads_the_graph_of_a_store_of_reordered_columns(
    turned: tuple[NodeClassifier, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder, other = turned
    monkeypatch.chdir(tmp_path)
    served_store(folder, tmp_path / "right")
    served_store(other, tmp_path / "wrong")
    (tmp_path / "new").mkdir()
    nodes = csv.read_csv(folder / "nodes.csv").slice(5, 1)
    nodes = nodes.set_column(0, "id", [["n"]])
    csv.write_csv(nodes, tmp_path / "new" / "nodes.csv")
    (tmp_path / "new" / "edges.csv").write_text("source,target\nn,3\nn,9\n")
    quick = ("--protocol", "stratified", "--runs", "1", "--set", "epochs=3", "--out", "run")
    train = ("--model", "ScalableNFGNN", "--device", "cpu")
    assert main_status("train", "right", *quick, *train) == 0
    for store in ("right", "wrong"):
        command = ("predict", "run", "new", "--extends", store, "--device", "cpu")
        assert main_status(*command, "-o", f"{store}.csv") == 0
    expected = csv.read_csv("right.csv")
    found = csv.read_csv("wrong.csv")
    np.testing.assert_allclose(found["probability"], expected["probability"], atol=1e-5)
    assert found["predicted"].equals(expected["predicted"])


def test_a_store_without_a_graph_keeps_the_encoding(served: Path, tmp_path: Path) -> None:
    """A model that is trained on it predicts on tables of other people."""
    data = load_dataset(served / "people")
    settings = Settings(K=2, features="standard", rows="all")
    store = precompute(MemorySource(data), tmp_path / "s", settings)
    rows = split(store.labels(), "stratified", 0)
    classifier = NodeClassifier("ScalableNFGNN", epochs=2, device="cpu").fit(rows)
    assert classifier.feature_encoding_ == data.feature_encoding
    assert classifier.feature_names_ == data.feature_names
    write_people(tmp_path / "few", np.arange(2))  # of two of the three cities
    few = load_dataset(tmp_path / "few", encoding=classifier.feature_encoding_, need_labels=False)
    assert classifier.predict_proba(few).shape == (2, 2)
