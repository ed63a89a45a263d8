"""The search as an estimator of scikit-learn."""

import pickle
from pathlib import Path

import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from nfgnn import AutoNodeClassifier, NodeClassifier, load_dataset, split
from nfgnn.auto import EnsembleClassifier, read_result
from nfgnn.errors import UserError
from nfgnn.training import load_run

PORTFOLIO = """
[[configuration]]
model = "GCN"
epochs = 20
[[configuration]]
model = "MLP"
epochs = 20
[[configuration]]
model = "LINK"
epochs = 20
"""


@pytest.fixture(scope="module")
def portfolio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("portfolio") / "portfolio.toml"
    path.write_text(PORTFOLIO)
    return path


@pytest.fixture(scope="module")
def data():
    return split(load_dataset("mixed", num_nodes=100), "stratified", 3)


@pytest.fixture(scope="module")
def fitted(portfolio: Path, data) -> AutoNodeClassifier:
    return AutoNodeClassifier(max_runs=8, portfolio=portfolio, device="cpu", workers=1, seed=3).fit(
        data
    )


def test_indices_of_nodes_and_partial_runs_are_refused(data) -> None:
    other = data.clone()
    other.train_mask = data.train_mask.nonzero().flatten()
    with pytest.raises(UserError, match=r"train_mask has the shape .* not indices of nodes"):
        AutoNodeClassifier(max_runs=1).fit(other)
    for runs in ("3", 2.5, 0):
        with pytest.raises(UserError, match=f"max_runs = {runs!r} is not valid"):
            AutoNodeClassifier(max_runs=runs).fit(data)


def test_arguments_are_those_of_an_estimator() -> None:
    clf = AutoNodeClassifier("30s", metric="macro_f1", seed=4)
    assert clf.get_params()["time"] == "30s"
    copied = clone(clf)
    assert copied is not clf
    assert copied.get_params() == clf.get_params()
    assert repr(clf) == "AutoNodeClassifier(time='30s', metric='macro_f1', seed=4)"
    assert clf.set_params(seed=5).seed == 5
    with pytest.raises(UserError, match="has no argument 'epochs'"):
        clf.set_params(epochs=3)
    assert is_classifier(clf)
    with pytest.raises(UserError, match="call fit"):
        clf.predict(load_dataset("karate"))


def test_it_is_fitted_on_the_given_masks(fitted: AutoNodeClassifier, data) -> None:
    check_is_fitted(fitted)
    result = fitted.result_
    assert result.class_counts["test"] == data.y[data.test_mask].bincount().tolist()
    assert fitted.leaderboard_ == result.leaderboard
    assert {entry.config.model for entry in fitted.leaderboard_} <= {"GCN", "MLP", "LINK"}
    assert isinstance(fitted.ensemble_, EnsembleClassifier)
    assert isinstance(fitted.best_, NodeClassifier)
    shares = fitted.predict_proba(data)
    assert torch.equal(shares, fitted.ensemble_.predict_proba(data))
    assert torch.equal(fitted.predict(data), shares.argmax(-1))
    correct = fitted.predict(data)[data.test_mask] == data.y[data.test_mask]
    assert fitted.score(data) == pytest.approx(float(correct.double().mean()))
    assert fitted.score(data, data.test_mask) == pytest.approx(result.ensemble_test.value)
    assert fitted.best_.score(data) == pytest.approx(result.test.value)
    assert fitted.classes_.tolist() == list(range(data.num_classes))
    assert fitted.n_features_in_ == data.num_features


def test_it_is_saved_as_a_run_folder(fitted: AutoNodeClassifier, data, tmp_path: Path) -> None:
    fitted.save(tmp_path / "out")
    fitted.save(tmp_path / "out")
    expected = fitted.predict_proba(data)
    loaded = AutoNodeClassifier.load(tmp_path / "out", device="cpu")
    copied = pickle.loads(pickle.dumps(fitted))
    for other in (loaded, copied):
        torch.testing.assert_close(other.predict_proba(data), expected, atol=1e-6, rtol=0)
        assert other.leaderboard_ == fitted.leaderboard_
    loaded.save(tmp_path / "again")
    assert read_result(tmp_path / "again").test == fitted.result_.test
    best = load_run(tmp_path / "again", device="cpu")
    torch.testing.assert_close(best.predict_proba(data), fitted.best_.predict_proba(data))
    (tmp_path / "again" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"notes\.txt"):
        fitted.save(tmp_path / "again", overwrite=True)


def test_other_results_and_damaged_folders(
    fitted: AutoNodeClassifier, portfolio: Path, tmp_path: Path
) -> None:
    """A graph without masks is split by the seed; ``single`` has no ensemble."""
    data = load_dataset("karate")
    other = AutoNodeClassifier(
        max_runs=2, portfolio=portfolio, device="cpu", workers=1, single=True
    ).fit([data])
    assert other.ensemble_ is None
    assert other.result_.protocol == "full"
    other.save(tmp_path / "out")
    with pytest.raises(UserError, match="overwrite"):
        fitted.save(tmp_path / "out")
    fitted.save(tmp_path / "out", overwrite=True)
    weights = next((tmp_path / "out").glob("seed-*/weights.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-4])
    with pytest.raises(UserError, match=r"weights\.safetensors: is damaged"):
        AutoNodeClassifier.load(tmp_path / "out")


def test_the_inductive_protocol_is_refused() -> None:
    data = split(load_dataset("mixed", num_nodes=200), "inductive", 0)
    with pytest.raises(UserError, match="unobserved nodes"):
        AutoNodeClassifier(max_runs=1).fit(data)
