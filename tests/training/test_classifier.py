import json

import pytest
import torch
from torch_geometric.data import Data

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.errors import UserError


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
        ({"model": "GNN"}, "there is no model 'GNN': choose one of"),
        ({"depth": 3}, "NFGNN has no setting 'depth': choose one of hidden_channels"),
        ({"K": "many"}, "K = 'many' is not valid: it takes a whole number from 0"),
        ({"K": 2.5}, "K = 2.5 is not valid"),
        ({"self_loops": 1}, "self_loops = 1 is not valid"),
        ({"basis": "fourier"}, "unknown basis 'fourier'"),
        ({"basis": 3}, "basis = 3 is not valid"),
        ({"features": "l2"}, "features = 'l2' is not valid: it takes one of auto"),
        ({"preset": "good"}, "there is no preset 'good'"),
        ({"device": "toaster"}, "unknown device 'toaster'"),
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
    without_test = data.clone()
    del without_test.test_mask
    with pytest.raises(UserError, match="has no test_mask"):
        fitted.score(without_test)
    with pytest.raises(UserError, match="trained on 32 features, this graph has 34"):
        fitted.predict(load_dataset("karate"))
    with pytest.raises(UserError, match="has no polynomial filter"):
        NodeClassifier("MLP", epochs=1).fit(data).coefficients(data)


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
