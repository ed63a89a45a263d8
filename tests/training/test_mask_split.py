"""The conventions of scikit-learn: parameters, tags, clones and searches."""

import pickle

import pytest
import torch
from scipy.stats import loguniform
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.errors import UserError
from nfgnn.training import MaskSplit


@pytest.fixture(scope="module")
def splits() -> list[Data]:
    data = load_dataset("mixed", num_nodes=120, seed=1)
    return [split(data, "stratified", seed) for seed in range(2)]


def test_tags_and_state(splits: list[Data]) -> None:
    clf = NodeClassifier(epochs=3)
    assert is_classifier(clf)
    assert not get_tags(clf).target_tags.required
    with pytest.raises(NotFittedError):
        check_is_fitted(clf)
    with pytest.raises(UserError, match="not fitted"):
        _ = clf.classes_
    clf.fit(splits[0])
    check_is_fitted(clf)
    assert torch.equal(clf.classes_, splits[0].y.unique())
    assert clf.n_features_in_ == splits[0].num_features
    other = pickle.loads(pickle.dumps(clf))
    assert torch.equal(other.predict_proba(splits[0]), clf.predict_proba(splits[0]))
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(clf))


def test_repr_shows_what_was_changed() -> None:
    assert repr(NodeClassifier()) == "NodeClassifier()"
    clf = NodeClassifier("GCN", seed=3, dropout=0.2)
    assert repr(clf) == "NodeClassifier(model='GCN', seed=3, dropout=0.2)"
    assert eval(repr(clf)).get_params() == clf.get_params()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"hiden_channels": 3}, "NFGNN has no setting 'hiden_channels'.*did you mean hidden_"),
        ({"K": -1}, "K = -1 is not valid"),
        ({"model": "NFGN"}, "unknown model 'NFGN'.*did you mean NFGNN"),
        ({"model": "MLP"}, "MLP has no setting 'K'"),
    ],
)
def test_set_params_refuses_what_does_not_exist(params: dict, message: str) -> None:
    clf = NodeClassifier(K=4)
    before = clf.get_params()
    with pytest.raises(ValueError, match=message):
        clf.set_params(seed=1, **params)
    assert clf.get_params() == before
    assert clf.set_params(seed=1, rank=2).get_params() == before | {"seed": 1, "rank": 2}


def test_grid_search_scores_the_validation_nodes_of_every_split(splits: list[Data]) -> None:
    folds = MaskSplit(splits)
    clf = NodeClassifier("NFGNN", epochs=15, seed=1)
    search = GridSearchCV(clf, {"K": [1, 4]}, cv=folds).fit(folds.graphs)
    for number, K in enumerate([1, 4]):
        expected = [
            NodeClassifier("NFGNN", epochs=15, seed=1, K=K).fit(data).score(data, data.val_mask)
            for data in splits
        ]
        found = [search.cv_results_[f"split{fold}_test_score"][number] for fold in range(2)]
        assert found == expected
    best = NodeClassifier("NFGNN", epochs=15, seed=1, **search.best_params_).fit(splits[0])
    assert torch.equal(search.predict(splits[0]), best.predict(splits[0]))
    assert search.score(splits[0]) == best.score(splits[0], splits[0].test_mask)
    # The labels of test nodes have no influence.
    for data in splits:
        data.y = torch.where(data.test_mask, 0, data.y)
    again = GridSearchCV(clf, {"K": [1, 4]}, cv=MaskSplit(splits)).fit(MaskSplit(splits).graphs)
    assert (
        again.cv_results_["mean_test_score"].tolist()
        == search.cv_results_["mean_test_score"].tolist()
    )


def test_randomized_search_by_another_metric(splits: list[Data]) -> None:
    folds = MaskSplit(splits[:1])
    clf = NodeClassifier("PolyGNN", epochs=5, metric="log_loss")
    distributions = {"lr": loguniform(1e-3, 1e-1), "basis": ["chebyshev", "bernstein"]}
    search = RandomizedSearchCV(clf, distributions, n_iter=2, cv=folds, random_state=0)
    search.fit(folds.graphs)
    data = splits[0]
    best = search.best_estimator_
    assert search.best_score_ == best.score(data, data.val_mask, metric="log_loss") < 0


def test_what_a_search_cannot_use_is_refused() -> None:
    with pytest.raises(UserError, match="at least one graph"):
        MaskSplit([])
    with pytest.raises(UserError, match="train_mask and val_mask"):
        MaskSplit([load_dataset("karate")])
