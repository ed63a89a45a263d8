import copy
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.errors import UserError
from nfgnn.store import MemorySource, Settings, precompute
from nfgnn.training import prediction_table
from nfgnn.training.inputs import align_features


@pytest.fixture(scope="module")
def data() -> Data:
    return split(load_dataset("mixed", num_nodes=300, seed=1), "full", 0)


@pytest.fixture(scope="module")
def fitted(data: Data) -> NodeClassifier:
    return NodeClassifier(
        "NFGNN", K=4, rank=2, basis="legendre", epochs=40, features="standard"
    ).fit(data)


def test_predictions_are_those_of_the_model(data: Data, fitted: NodeClassifier) -> None:
    p = fitted.predict_proba(data)
    torch.testing.assert_close(p.sum(1), torch.ones(300))
    x = fitted.scaling_.apply(data.x)
    torch.testing.assert_close(p, fitted.model_(x, data.edge_index).detach().softmax(-1))
    assert torch.equal(fitted.predict(data), p.argmax(1))
    right = (fitted.predict(data) == data.y)[data.test_mask].double().mean()
    assert fitted.score(data) == fitted.score(data, data.test_mask) == pytest.approx(float(right))


def test_response_is_the_polynomial_of_the_coefficients(data: Data, fitted: NodeClassifier) -> None:
    frequencies, curves = fitted.response(data, nodes=[3, 7])
    assert (float(frequencies[0]), float(frequencies[-1])) == (0.0, 2.0)
    psi = fitted.coefficients(data)
    assert psi.shape == (300, 5)
    import numpy as np

    expected = np.polynomial.legendre.legval(
        frequencies.numpy() - 1, psi[[3, 7]].T.double().numpy()
    )
    torch.testing.assert_close(curves, torch.as_tensor(expected), rtol=1e-5, atol=1e-6)


def test_the_same_seed_gives_the_same_model_and_leaves_the_generator_alone(data: Data) -> None:
    torch.manual_seed(5)
    a = NodeClassifier("NFGNN", epochs=5, seed=3).fit(data).predict_proba(data)
    drawn = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(1))
    b = NodeClassifier("NFGNN", epochs=5, seed=3).fit(data).predict_proba(data)
    c = NodeClassifier("NFGNN", epochs=5, seed=4).fit(data).predict_proba(data)
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_fits_in_threads_equal_fits_one_by_one(data: Data) -> None:
    def probabilities(seed: int) -> torch.Tensor:
        return NodeClassifier("NFGNN", epochs=8, seed=seed).fit(data).predict_proba(data)

    expected = [probabilities(seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(probabilities, range(6)))
    for a, b in zip(expected, found):
        assert torch.equal(a, b)


def test_save_and_load(data: Data, fitted: NodeClassifier, tmp_path) -> None:
    fitted.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model")
    assert torch.equal(again.predict_proba(data), fitted.predict_proba(data))
    assert torch.equal(again.coefficients(data), fitted.coefficients(data))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model"]


def test_a_damaged_model_is_refused_in_a_sentence(fitted: NodeClassifier, tmp_path) -> None:
    fitted.save(tmp_path / "model")
    weights = tmp_path / "model" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(UserError, match="damaged"):
        NodeClassifier.load(tmp_path / "model")
    with pytest.raises(UserError, match=r"classifier\.json is missing"):
        NodeClassifier.load(tmp_path)
    with pytest.raises(UserError, match="overwrite=True"):
        fitted.save(tmp_path / "model")
    fitted.save(tmp_path / "model", overwrite=True)
    description = json.loads((tmp_path / "model" / "classifier.json").read_text())
    description["config"]["hidden_channels"] = 3
    (tmp_path / "model" / "classifier.json").write_text(json.dumps(description))
    with pytest.raises(UserError, match="damaged"):
        NodeClassifier.load(tmp_path / "model")


def test_a_graph_never_seen(fitted: NodeClassifier) -> None:
    other = load_dataset("mixed", num_nodes=200, seed=9)
    assert fitted.predict(other).shape == (200,)


def test_parameters_in_the_manner_of_scikit_learn() -> None:
    clf = NodeClassifier("NFGNN", K=3)
    assert clf.get_params() == {
        "model": "NFGNN",
        "preset": "best",
        "seed": 0,
        "device": "auto",
        "K": 3,
    }
    assert clf.set_params(K=4, seed=2) is clf
    assert clf.get_params()["K"] == 4
    from sklearn.base import clone

    assert clone(clf).get_params() == clf.get_params()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "GNN"}, "unknown model 'GNN': choose one of"),
        ({"depth": 3}, "NFGNN has no setting 'depth': choose one of hidden_channels"),
        ({"K": "many"}, "K = 'many' is not valid: it takes a whole number from 0"),
        ({"K": 2.5}, "K = 2.5 is not valid"),
        ({"lambda_max": 1e-300}, "lambda_max = 1e-300 is not valid: it takes a number from 1e-06"),
        ({"self_loops": 1}, "self_loops = 1 is not valid"),
        ({"basis": "fourier"}, "unknown basis 'fourier'"),
        ({"basis": 3}, "basis = 3 is not valid"),
        ({"features": "l2"}, "features = 'l2' is not valid: it takes one of auto"),
        ({"preset": "good"}, "unknown preset 'good'"),
        ({"device": "toaster"}, "unknown device 'toaster'"),
        ({"weight_decay": 1e300, "epochs": 5}, r"reduce .* the weight decay \(weight_decay"),
        ({"lr": 1e38, "epochs": 5}, r"reduce the learning rates \(lr, filter_lr\)"),
    ],
)
def test_wrong_settings_are_said_in_a_sentence(data: Data, settings, message) -> None:
    with pytest.raises(UserError, match=message):
        NodeClassifier(**{"epochs": 1, **settings}).fit(data)


def test_what_is_missing_is_said(data: Data, fitted: NodeClassifier) -> None:
    with pytest.raises(UserError, match="not fitted yet"):
        NodeClassifier().predict(data)
    without_val = data.clone()
    del without_val.val_mask
    with pytest.raises(UserError, match="has no val_mask"):
        NodeClassifier().fit(without_val)
    unchecked = Data(x=data.x, y=data.y, edge_index=data.edge_index)
    with pytest.raises(UserError, match=r"pass nfgnn.load_dataset\(data\)"):
        NodeClassifier().fit(unchecked)
    without_test = data.clone()
    del without_test.test_mask
    with pytest.raises(UserError, match="has no test_mask"):
        fitted.score(without_test)
    with pytest.raises(UserError, match="karate has 34 features, but the model was trained on 32"):
        fitted.predict(load_dataset("karate"))
    for name in ("MLP", "FSGNN"):
        other = NodeClassifier(name, epochs=1).fit(data)
        for method in (other.coefficients, other.response, other.lambda_max):
            with pytest.raises(UserError, match=f"^{name} has no polynomial filter"):
                method(data)


@pytest.mark.parametrize(("registered", "protocol"), [(True, "full"), (False, "stratified")])
def test_a_graph_without_masks_is_split_by_the_default_protocol(registered, protocol) -> None:
    data = load_dataset("mixed", num_nodes=100)
    data.registered = registered
    fitted = NodeClassifier("MLP", preset="none", seed=2, epochs=5).fit(data)
    explicit = split(data, protocol, 2)
    expected = NodeClassifier("MLP", preset="none", seed=2, epochs=5).fit(explicit)
    assert torch.equal(fitted.predict_proba(data), expected.predict_proba(data))
    assert fitted.score(data) == expected.score(explicit)
    assert "train_mask" not in data


def people(rng: np.random.Generator, num_nodes: int = 60) -> dict[str, pa.Table]:
    """Two tables with gaps, categories, dates and a heavy tail."""
    label = rng.integers(0, 2, num_nodes)
    age = np.where(
        rng.random(num_nodes) < 0.2, np.nan, 30 + 10 * label + rng.normal(size=num_nodes)
    )
    joined = np.datetime64("2020-01-01") + rng.integers(0, 900, num_nodes)
    nodes = {
        "label": np.where(label == 1, "yes", "no"),
        "age": pa.array(age, from_pandas=True),
        "income": np.exp(rng.normal(8, 2, num_nodes)),
        "city": rng.choice(["Rome", "Oslo", "Bonn"], num_nodes),
        "joined": pa.array(joined),
    }
    ends = rng.integers(0, num_nodes, (2, 3 * num_nodes))
    edges = {"source": ends[0], "target": ends[1]}
    return {"nodes": pa.table({"id": range(num_nodes), **nodes}), "edges": pa.table(edges)}


def test_a_model_of_a_table_encodes_other_tables_as_its_own(tmp_path) -> None:
    tables = people(np.random.default_rng(0))
    data = split(load_dataset(**tables), "stratified", 0)
    clf = NodeClassifier("GCN", epochs=20, device="cpu").fit(data)
    clf.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model", "cpu")
    assert torch.equal(again.predict_proba(data), clf.predict_proba(data))
    assert again.feature_encoding_ == data.feature_encoding
    # Another table without a gap, without Oslo, with a new city, and with its columns reversed.
    nodes = tables["nodes"].slice(0, 20)
    city = ["Paris", *["Rome"] * 19]
    nodes = nodes.set_column(4, "city", [city]).set_column(2, "age", [[31.0] * 20])
    nodes = nodes.select(["id", *reversed(nodes.column_names[2:])])
    other = {"nodes": nodes, "edges": pa.table({"source": [0], "target": [1]})}
    unknown = load_dataset(**other, need_labels=False)
    with pytest.raises(UserError, match=r"load it with load_dataset\(…, encoding=classifier\."):
        again.predict(unknown)
    known = load_dataset(**other, need_labels=False, encoding=again.feature_encoding_)
    assert any("does not know (Paris)" in note for note in known.notes)
    assert known.feature_names == data.feature_names
    columns = [i for i, name in enumerate(data.feature_names) if name.startswith(("income", "joi"))]
    assert torch.equal(known.x[:, columns], data.x[:20, columns])
    assert again.predict_proba(known).shape == (20, 2)


def test_gaps_are_filled_from_the_training_nodes() -> None:
    data = split(load_dataset(**people(np.random.default_rng(1))), "stratified", 0)
    clf = NodeClassifier("MLP", epochs=2, device="cpu").fit(data)
    age = data.x[:, data.feature_names.index("age")]
    gap = data.x[:, data.feature_names.index("age missing")] != 0
    expected = np.median(age[data.train_mask & ~gap].numpy())
    assert clf.scaling_.median is not None
    assert clf.scaling_.median.tolist() == [pytest.approx(float(expected))]


def test_running_statistics_are_saved(data: Data, tmp_path) -> None:
    settings = {"hidden_channels": 16, "num_layers": 2, "norm": "batch", "epochs": 5}
    clf = NodeClassifier("ResidualGCN", **settings).fit(data)
    clf.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model")
    means = [buffer for name, buffer in again.model_.named_buffers() if name.endswith("mean")]
    assert len(means) == 3
    assert all(bool(mean.abs().sum() > 0) for mean in means)
    assert (clf.predict_proba(data) == again.predict_proba(data)).all()


def named(data: Data) -> Data:
    """Return a graph with names of features and classes."""
    graph = data.clone()
    graph.feature_names = [f"f{i}" for i in range(data.num_features)]
    graph.class_names = ["a", "b", "c", "d"][: data.num_classes]
    return graph


def test_columns_and_classes_are_matched_by_name(data: Data) -> None:
    graph = named(data)
    classifier = NodeClassifier("NFGNN", K=2, epochs=20).fit(graph)
    order = torch.randperm(graph.num_features, generator=torch.Generator().manual_seed(0))
    other = graph.clone()
    other.x = graph.x[:, order]
    other.feature_names = [graph.feature_names[i] for i in order]
    assert torch.equal(classifier.predict_proba(other), classifier.predict_proba(graph))
    assert torch.equal(classifier.coefficients(other), classifier.coefficients(graph))
    for curve, expected in zip(classifier.response(other), classifier.response(graph)):
        assert torch.equal(curve, expected)
    wider = other.clone()
    wider.x = torch.cat([torch.ones(other.num_nodes, 1), other.x], 1)
    wider.feature_names = ["another", *other.feature_names]
    assert torch.equal(classifier.predict_proba(wider), classifier.predict_proba(graph))
    assert torch.equal(classifier.coefficients(wider), classifier.coefficients(graph))
    assert classifier.lambda_max(wider) == classifier.lambda_max(graph)
    for curve, expected in zip(classifier.response(wider), classifier.response(graph)):
        assert torch.equal(curve, expected)
    other.class_names = graph.class_names[::-1]
    other.y = graph.num_classes - 1 - graph.y
    assert classifier.score(other) == classifier.score(graph)
    other.class_names = ["z", *other.class_names[1:]]
    with pytest.raises(UserError, match="the graph has the class 'z'"):
        classifier.score(other)


def test_classes_that_have_only_numbers_are_matched_by_their_places(data: Data) -> None:
    numbered = named(data)
    numbered.class_names = [str(c) for c in range(data.num_classes)]
    readable = named(data)
    for trained, scored in ((numbered, readable), (readable, numbered)):
        classifier = NodeClassifier("MLP", epochs=20).fit(trained)
        assert classifier.score(scored) == classifier.score(trained)
    # Numbers in another order are names.
    other = numbered.clone()
    other.class_names = numbered.class_names[::-1]
    other.y = data.num_classes - 1 - data.y
    classifier = NodeClassifier("MLP", epochs=20).fit(numbered)
    assert classifier.score(other) == classifier.score(numbered)


def test_classes_that_cannot_be_matched_are_refused(data: Data) -> None:
    graph = named(data)
    classifier = NodeClassifier("MLP", epochs=3).fit(graph)
    other = graph.clone()
    other.class_names = graph.class_names[:1]
    with pytest.raises(UserError, match="y holds the class 3, but class_names has only 1 names"):
        classifier.score(other)
    other.class_names = ["b"] * graph.num_classes
    with pytest.raises(UserError, match="several classes have the name 'b'"):
        classifier.score(other)
    repeated = NodeClassifier("MLP", epochs=3).fit(other)
    with pytest.raises(UserError, match="several classes have the name 'b'"):
        repeated.score(graph)
    assert repeated.score(other) == classifier.score(graph)


@pytest.mark.parametrize("serve", [False, True])
def test_a_store_of_other_columns_is_refused(serve: bool, data: Data, tmp_path) -> None:
    """Its terms cannot be sorted, unlike the features of a graph."""
    graph = named(data)
    turned = graph.clone()
    turned.x = graph.x.flip(1)
    turned.feature_names = graph.feature_names[::-1]
    settings = Settings(K=2, rows="all", serve=serve)
    rows = precompute(MemorySource(graph), tmp_path / "same", settings).labels()
    other = precompute(MemorySource(turned), tmp_path / "turned", settings).labels()
    classifier = NodeClassifier("ScalableNFGNN", K=2, epochs=3).fit(split(rows, "full", 0))
    expected = classifier.predict_proba(rows)
    for known in (graph, turned):
        torch.testing.assert_close(classifier.predict_proba(known), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(UserError, match="from the features in another order than in training"):
        classifier.predict_proba(other)


def test_sparse_features_in_another_order_stay_sparse(data: Data) -> None:
    graph = named(data)
    graph.x = graph.x.relu()
    order = torch.randperm(graph.num_features, generator=torch.Generator().manual_seed(0))
    other = graph.clone()
    other.x = graph.x[:, order].to_sparse_csr()
    other.feature_names = [graph.feature_names[i] for i in order]
    aligned = align_features(other, graph.feature_names)
    assert aligned.x.layout == torch.sparse_csr
    assert torch.equal(aligned.x.to_dense(), graph.x)
    assert aligned.feature_names == graph.feature_names


def test_features_of_the_same_name_are_not_sorted(data: Data) -> None:
    graph = named(data)
    classifier = NodeClassifier("MLP", epochs=3).fit(graph)
    repeated = graph.clone()
    repeated.x = torch.cat([graph.x, graph.x[:, :1]], 1)
    repeated.feature_names = [*graph.feature_names, "f0"]
    with pytest.raises(UserError, match="several features have the name 'f0'"):
        classifier.predict(repeated)
    again = NodeClassifier("MLP", epochs=3).fit(repeated)
    assert again.predict(repeated).shape == (data.num_nodes,)
    turned = repeated.clone()
    turned.x = repeated.x.flip(1)
    turned.feature_names = repeated.feature_names[::-1]
    for other in (turned, graph):
        with pytest.raises(UserError, match="several features have the name 'f0'"):
            again.predict(other)


@pytest.mark.parametrize("change", [1, -1])
def test_the_number_of_names_is_that_of_the_features(change: int, data: Data) -> None:
    graph = named(data)
    classifier = NodeClassifier("MLP", epochs=3).fit(graph)
    other = graph.clone()
    other.feature_names = ["another", *graph.feature_names][: data.num_features + change]
    count = f"has {data.num_features + change} names for {data.num_features} features; give every"
    with pytest.raises(UserError, match=count):
        classifier.predict(other)
    with pytest.raises(UserError, match=count):
        NodeClassifier("MLP", epochs=3).fit(other)
    other.feature_names = []  # none at all
    assert torch.equal(classifier.predict_proba(other), classifier.predict_proba(graph))


@pytest.mark.parametrize("kind", [tuple, np.array, pd.Index])
def test_names_may_be_any_sequence(kind: Callable[..., Any], data: Data, tmp_path) -> None:
    graph = named(data)
    other = graph.clone()
    other.feature_names = kind(graph.feature_names)
    other.class_names = kind(graph.class_names)
    classifier = NodeClassifier("NFGNN", K=2, epochs=3).fit(other)
    assert classifier.feature_names_ == graph.feature_names
    assert align_features(other, classifier.feature_names_) is other
    assert torch.equal(classifier.predict_proba(other), classifier.predict_proba(graph))
    assert torch.equal(classifier.coefficients(other), classifier.coefficients(graph))
    assert classifier.score(other) == classifier.score(graph)
    table = prediction_table(classifier, other)
    assert table.equals(prediction_table(classifier, graph))
    classifier.save(tmp_path / "model")
    assert NodeClassifier.load(tmp_path / "model").class_names_ == graph.class_names


def test_names_are_compared_as_text(data: Data, tmp_path) -> None:
    graph = named(data)
    graph.class_names = list(range(graph.num_classes))
    classifier = NodeClassifier("MLP", epochs=3).fit(graph)
    other = graph.clone()
    other.class_names = [str(name) for name in graph.class_names]
    assert classifier.score(other) == classifier.score(graph)
    classifier.save(tmp_path / "model")
    assert NodeClassifier.load(tmp_path / "model").score(graph) == classifier.score(graph)


def test_masks_may_be_numbers_but_not_indices(data: Data, fitted: NodeClassifier) -> None:
    expected = fitted.score(data, data.test_mask)
    assert fitted.score(data, data.test_mask.long()) == expected
    assert fitted.score(data, data.test_mask.numpy()) == expected
    with pytest.raises(UserError, match=r"shape \[3\], .* \[300\]: .* not indices of nodes"):
        fitted.score(data, torch.tensor([0, 1, 2]))
    with pytest.raises(UserError, match=r"the mask holds 2, .* not indices of nodes"):
        fitted.score(data, torch.arange(data.num_nodes))
    with pytest.raises(UserError, match=r"one column per split: .* mask\[:, 0\]"):
        fitted.score(data, torch.stack([data.test_mask, data.val_mask], 1))
    with pytest.raises(UserError, match="the mask is not a mask: pass one boolean per node"):
        fitted.score(data, "test_mask")


def test_training_masks_may_be_numbers_but_not_indices(data: Data) -> None:
    expected = NodeClassifier("MLP", epochs=3).fit(data).predict_proba(data)
    for convert in (Tensor.long, Tensor.numpy, Tensor.tolist):
        other = data.clone()
        other.train_mask = convert(data.train_mask)
        classifier = NodeClassifier("MLP", epochs=3).fit(other)
        assert torch.equal(classifier.predict_proba(data), expected)
    for name in ("train_mask", "val_mask"):
        other = data.clone()
        other[name] = data[name].nonzero().flatten()
        with pytest.raises(UserError, match=f"{name} has the shape .* not indices of nodes"):
            NodeClassifier("MLP", epochs=3).fit(other)
        other[name] = torch.where(data[name], 1, -1)
        with pytest.raises(UserError, match=f"{name} holds -1"):
            NodeClassifier("MLP", epochs=3).fit(other)


def test_labels_that_cannot_be_scored_are_refused(data: Data, fitted: NodeClassifier) -> None:
    other = data.clone()
    other.y = data.y[:, None]
    with pytest.raises(UserError, match=r"y has the shape \[300, 1\]"):
        fitted.score(other, data.test_mask)
    other.y = data.y.float()
    with pytest.raises(UserError, match="y holds floating-point numbers"):
        fitted.score(other, data.test_mask)
    other.y = None
    with pytest.raises(UserError, match="the graph has no labels to score"):
        fitted.score(other, data.test_mask)


@pytest.mark.parametrize("nodes", [[300], ["a"], [0.5], {1}])
def test_responses_of_unknown_nodes_are_refused(
    data: Data, fitted: NodeClassifier, nodes: object
) -> None:
    with pytest.raises(UserError, match="nodes must hold indices from 0 to 299"):
        fitted.response(data, nodes=nodes)


def test_no_nodes_have_no_responses(data: Data, fitted: NodeClassifier) -> None:
    assert fitted.response(data, nodes=[], points=9)[1].shape == (0, 9)


def test_prediction_needs_no_classes(data: Data, fitted: NodeClassifier) -> None:
    bare = Data(x=data.x, edge_index=data.edge_index)
    assert torch.equal(fitted.predict_proba(bare), fitted.predict_proba(data))


def test_a_loaded_classifier_has_its_settings(data: Data, fitted: NodeClassifier, tmp_path) -> None:
    fitted.save(tmp_path / "model")
    loaded = NodeClassifier.load(tmp_path / "model")
    assert loaded.get_params()["K"] == 4
    again = loaded.fit(data)
    assert again.config_ == fitted.config_
    assert torch.equal(again.predict_proba(data), fitted.predict_proba(data))


def test_a_failed_fit_is_not_fitted(data: Data) -> None:
    classifier = NodeClassifier("MLP", epochs=3).fit(data)
    broken = data.clone()
    broken.val_mask = torch.zeros_like(data.val_mask)
    with pytest.raises(UserError):
        classifier.fit(broken)
    assert not classifier.__sklearn_is_fitted__()
    with pytest.raises(UserError, match="not fitted"):
        classifier.predict(data)


def test_settings_may_be_numpy_scalars(data: Data, tmp_path) -> None:
    settings = {"K": np.int64(2), "lr": np.float32(0.125), "epochs": np.int32(3)}
    classifier = NodeClassifier("NFGNN", seed=np.int64(1), **settings).fit(data)
    assert classifier.config_.hyper["K"] == 2
    classifier.save(tmp_path / "model")
    loaded = NodeClassifier.load(tmp_path / "model")
    assert torch.equal(loaded.predict_proba(data), classifier.predict_proba(data))


@pytest.mark.parametrize("basis", ["jacobi(0.3333333333333333, 0.1234567)", "jacobi(1, 0.5)"])
def test_a_saved_basis_keeps_its_parameters(basis: str, data: Data, tmp_path) -> None:
    classifier = NodeClassifier("PolyGNN", basis=basis, epochs=2).fit(data)
    assert classifier.config_.settings()["basis"] == basis
    classifier.save(tmp_path / "model")
    loaded = NodeClassifier.load(tmp_path / "model")
    assert torch.equal(loaded.predict_proba(data), classifier.predict_proba(data))


@pytest.mark.parametrize("model", ["NFNet", "ScalableNFGNN"])
@pytest.mark.parametrize("sparse", [False, True])
def test_features_that_became_invalid_are_reported(data: Data, model: str, sparse: bool) -> None:
    changed = copy.copy(data)
    changed.x = data.x.clone()
    changed.x[7, 3] = torch.nan
    if sparse:
        changed.x = changed.x.to_sparse_csr()
    clf = NodeClassifier(model, hidden_channels=8, epochs=2, features="raw")
    with pytest.raises(UserError, match=r"^mixed: the feature in row 7, column 3 .* is nan"):
        clf.fit(changed)
