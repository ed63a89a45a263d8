"""A fitted ensemble, against the mean of its members by hand."""

from pathlib import Path

import pytest
import torch

from nfgnn.auto.ensemble_classifier import EnsembleClassifier, FittedMember
from nfgnn.data import load_dataset, split
from nfgnn.errors import UserError
from nfgnn.training import NodeClassifier, prediction_table


def fitted(model: str, data) -> NodeClassifier:
    return NodeClassifier(model, preset="none", epochs=3, device="cpu").fit(data)


@pytest.fixture(scope="module")
def data():
    return split(load_dataset("mixed", num_nodes=60), "stratified", 0)


@pytest.fixture(scope="module")
def ensemble(data) -> EnsembleClassifier:
    members = [
        FittedMember("MLP", 0.5, 2.0, fitted("MLP", data)),
        FittedMember("GCN", 0.3, 1.0, fitted("GCN", data)),
        FittedMember("LINK", 0.2, 0.5, fitted("LINK", data)),
    ]
    return EnsembleClassifier(members, 0.8)


def by_hand(members, data) -> torch.Tensor:
    total = sum(member.weight for member in members)
    mean = torch.zeros(data.num_nodes, data.num_classes, dtype=torch.float64)
    for member in members:
        powers = member.classifier.predict_proba(data).double() ** (1 / member.temperature)
        mean += member.weight / total * powers / powers.sum(1, keepdim=True)
    powers = mean ** (1 / 0.8)
    return (powers / powers.sum(1, keepdim=True)).float()


def test_probabilities_are_the_calibrated_weighted_mean(ensemble, data) -> None:
    shares = ensemble.predict_proba(data)
    torch.testing.assert_close(shares, by_hand(ensemble.members, data), atol=1e-6, rtol=0)
    assert torch.equal(ensemble.predict(data), shares.argmax(-1))


def test_members_with_weights_per_node_are_left_out_of_other_graphs(ensemble) -> None:
    other = load_dataset("mixed", num_nodes=80, seed=1)
    used = ensemble.members_for(other)
    assert [member.name for member in used] == ["MLP", "GCN"]
    expected = by_hand(used, other)
    torch.testing.assert_close(ensemble.predict_proba(other), expected, atol=1e-6, rtol=0)
    alone = EnsembleClassifier(ensemble.members[2:], 1.0)
    with pytest.raises(UserError, match="a weight for every node"):
        alone.predict_proba(other)


def test_files_hold_the_same_ensemble(ensemble, data, tmp_path: Path) -> None:
    ensemble.write_files(tmp_path)
    read = EnsembleClassifier.load(tmp_path, "cpu")
    expected = ensemble.predict_proba(data)
    torch.testing.assert_close(read.predict_proba(data), expected, atol=1e-6, rtol=0)
    assert [member.name for member in read.members] == ["MLP", "GCN", "LINK"]


def test_members_of_another_graph_are_refused(ensemble, data, tmp_path: Path) -> None:
    other = split(load_dataset("karate"), "stratified", 0)
    stranger = FittedMember("GCN", 0.5, 1.0, fitted("GCN", other))
    own = FittedMember("MLP", 0.5, 1.0, ensemble.members[0].classifier)
    EnsembleClassifier([own, stranger], 1.0).write_files(tmp_path)
    with pytest.raises(UserError, match="different classes"):
        EnsembleClassifier.load(tmp_path, "cpu")


def test_tables_of_predictions(ensemble, data) -> None:
    table = prediction_table(ensemble, data)
    best = ensemble.predict_proba(data).amax(1)
    assert table["probability"].to_pylist() == best.tolist()
    with pytest.raises(UserError, match="--single"):
        prediction_table(ensemble, data, extends=data)
