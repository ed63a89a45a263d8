"""Metrics equal those of scikit-learn; the summary of many runs."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sklearn_metrics
from torch import Tensor
from torch_geometric.data import Data

from nfgnn import load_dataset
from nfgnn.errors import UserError
from nfgnn.training import METRICS, find_metric, resolve_metric, summarise
from nfgnn.training.metrics import scores


def test_mean_and_interval_are_those_of_scipy() -> None:
    values = [0.7, 0.8, 0.75, 0.9]
    summary = summarise(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert summary["mean"] == pytest.approx(np.mean(values))
    assert summary["ci95"] == pytest.approx((high - low) / 2)
    assert summary["std"] == pytest.approx(np.std(values, ddof=1))
    assert summary["values"] == values


def test_a_single_value_has_no_interval() -> None:
    assert summarise([0.5])["ci95"] is None


def _ranking(function: Callable[..., float], **multi_class: str) -> Callable[..., float]:
    """Call a function of scikit-learn that takes one column of scores for two classes."""

    def oracle(p: np.ndarray, y: np.ndarray) -> float:
        if p.shape[1] == 2:
            return float(function(y, p[:, 1]))
        return float(function(y, p, average="macro", **multi_class))

    return oracle


def _of_labels(function: Callable[..., float], **more: str) -> Callable[..., float]:
    def oracle(p: np.ndarray, y: np.ndarray) -> float:
        return float(function(y, p.argmax(1), **more))

    return oracle


def _log_loss(p: np.ndarray, y: np.ndarray) -> float:
    return float(sklearn_metrics.log_loss(y, p, labels=range(p.shape[1])))


ORACLES: dict[str, Callable[..., float]] = {
    "accuracy": _of_labels(sklearn_metrics.accuracy_score),
    "balanced_accuracy": _of_labels(sklearn_metrics.balanced_accuracy_score),
    "macro_f1": _of_labels(sklearn_metrics.f1_score, average="macro"),
    "roc_auc": _ranking(sklearn_metrics.roc_auc_score, multi_class="ovr"),
    "average_precision": _ranking(sklearn_metrics.average_precision_score),
    "log_loss": _log_loss,
}


def _predictions(seed: int, nodes: int, classes: int, levels: int) -> tuple[Tensor, Tensor]:
    """Return probabilities with few distinct values, so that many are tied, and rare classes."""
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randint(levels, (nodes, classes), generator=rng).double()
    rare = torch.rand(nodes, generator=rng, dtype=torch.float64) ** 3
    y = (rare * classes).long()
    y[:classes] = torch.arange(classes)
    return logits.softmax(-1), y


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("name", METRICS)
def test_equal_to_scikit_learn_with_ties(name: str, classes: int, dtype: torch.dtype) -> None:
    for seed in range(8):
        probabilities, y = _predictions(seed, 40 + 20 * seed, classes, levels=2 + seed)
        probabilities = probabilities.to(dtype)
        expected = ORACLES[name](probabilities.numpy(), y.numpy())
        found = METRICS[name].compute(probabilities, y, classes)
        assert found == pytest.approx(expected, abs=1e-6)


def test_certain_and_wrong_predictions_have_a_finite_log_loss() -> None:
    probabilities = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    y = torch.tensor([0, 1, 1])
    found = METRICS["log_loss"].compute(probabilities, y, 2)
    assert found == pytest.approx(_log_loss(probabilities.numpy(), y.numpy()), abs=1e-6)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("name", METRICS)
def test_nodes_without_weight_do_not_count(name: str, classes: int) -> None:
    """Batched runs have masks of their own, and logits outside of a mask may be infinite."""
    metric = METRICS[name]
    probabilities, y = _predictions(3, 60, classes, levels=4)
    inside = torch.ones(2, 60, dtype=torch.bool)
    inside[0, classes::3] = False
    inside[1, classes::2] = False
    runs = probabilities.expand(2, -1, -1).clone()
    runs[~inside] = torch.nan
    found = metric.value(runs, y.expand(2, -1), inside.double())
    expected = [metric.compute(probabilities[nodes], y[nodes], classes) for nodes in inside]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=found.dtype))


@settings(deadline=None, max_examples=60)
@given(
    classes=st.integers(2, 12),
    share=st.floats(0.005, 0.5),
    nodes=st.integers(1, 300),
    unlabelled=st.floats(0, 0.6),
    seed=st.integers(0, 10_000),
)
def test_a_metric_is_defined_if_its_classes_are_present(
    classes: int, share: float, nodes: int, unlabelled: float, seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    y = torch.randint(1, classes, (nodes,), generator=rng)
    y[torch.rand(nodes, generator=rng) < share] = 0
    y[torch.rand(nodes, generator=rng) < unlabelled] = -1
    data = Data(y=y, num_nodes=nodes, num_classes=classes, metric="accuracy")
    drawn = torch.randint(3, (nodes,), generator=rng)
    for number, mask in enumerate(("train_mask", "val_mask", "test_mask")):
        data[mask] = drawn == number
    probabilities = torch.rand(nodes, classes, generator=rng).softmax(-1)
    for metric in METRICS.values():
        found = scores(probabilities, data, metric)
        for part in ("train", "val", "test"):
            labels = y[data[f"{part}_mask"] & (y >= 0)]
            present = labels.unique().numel()
            needed = classes if metric.needs_every_class else 1
            assert (f"{part}_{metric.name}" in found) == (present >= needed)
            assert (f"{part}_accuracy" in found) == (present > 0)
        assert all(map(math.isfinite, found.values()))


def test_an_undefined_metric_names_the_missing_classes() -> None:
    roc_auc = METRICS["roc_auc"]
    assert roc_auc.undefined([4, 0, 3, 0]) == (
        "ROC-AUC needs nodes of every class, and it has none of classes 1, 3"
    )
    assert roc_auc.undefined([0, 0]) == "it has no labelled node"
    assert roc_auc.undefined([1, 1]) is None
    assert METRICS["accuracy"].undefined([4, 0]) is None
    assert math.isnan(roc_auc.compute(torch.rand(5, 2), torch.zeros(5).long(), 2))


def test_unknown_names_are_refused_with_a_suggestion() -> None:
    with pytest.raises(UserError, match=r"unknown metric 'roc'.*did you mean"):
        find_metric("roc")


def _graph(minority: int, of: int, classes: int = 2) -> Data:
    y = torch.arange(of) % (classes - 1) + 1
    y[:minority] = 0
    return Data(y=y, num_nodes=of, num_classes=classes)


def test_the_metric_of_a_graph() -> None:
    assert resolve_metric("auto", _graph(29, 100)).name == "roc_auc"
    assert resolve_metric("auto", _graph(30, 100)).name == "accuracy"
    assert resolve_metric("auto", _graph(10, 100, classes=3)).name == "accuracy"
    assert resolve_metric("macro_f1", _graph(10, 100)).name == "macro_f1"
    official = _graph(10, 100)
    official.metric = "average_precision"
    assert resolve_metric("auto", official).name == "average_precision"
    # Unlabelled nodes do not count.
    half_labelled = _graph(29, 100)
    half_labelled.y[50:] = -1
    assert resolve_metric("auto", half_labelled).name == "accuracy"
    assert resolve_metric("auto", load_dataset("karate")).name == "accuracy"


def test_better_follows_the_direction_of_the_metric() -> None:
    assert METRICS["roc_auc"].is_better(0.9, 0.8)
    assert METRICS["log_loss"].is_better(0.8, 0.9)
    assert METRICS["roc_auc"].shown(0.9126) == "91.26 %"
    assert METRICS["log_loss"].shown(0.9126) == "0.9126"
