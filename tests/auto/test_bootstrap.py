"""Scores of bootstrap samples against scikit-learn, intervals against closed forms."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, log_loss, roc_auc_score

from nfgnn.auto.bootstrap import ScoredNodes, bootstrap_score, interval
from nfgnn.training import METRICS

ORACLES = {
    "accuracy": lambda y, p, w: accuracy_score(y, p.argmax(1), sample_weight=w),
    "macro_f1": lambda y, p, w: f1_score(y, p.argmax(1), sample_weight=w, average="macro"),
    "roc_auc": lambda y, p, w: roc_auc_score(y, p, sample_weight=w, multi_class="ovr"),
    "log_loss": lambda y, p, w: log_loss(y, p, sample_weight=w),
}


def predictions(count: int, classes: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return labels and weakly informative probabilities."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(count) % classes
    noise = torch.randn(count, classes, generator=generator, dtype=torch.float64)
    logits = noise + torch.nn.functional.one_hot(y)
    return y, logits.softmax(1)


@pytest.mark.parametrize("name", ORACLES)
def test_scores_of_samples_are_weighted_metrics(name: str) -> None:
    y, first = predictions(40, 3, 0)
    _, second = predictions(40, 3, 1)
    nodes = torch.arange(40)
    scored = ScoredNodes((nodes, nodes), (y, y), 3)
    weights = [weight[:5] for weight in scored.sample_weights(METRICS[name])]
    assert torch.equal(weights[0], weights[1])  # the same nodes, so the same weights
    values = scored.sample_scores(METRICS[name], [first, second], weights)
    for row, value in zip(weights[0].numpy(), values.tolist()):
        oracle = ORACLES[name]
        expected = [oracle(y.numpy(), part.numpy(), row) for part in (first, second)]
        assert value == pytest.approx(sum(expected) / 2)


def test_nodes_of_two_splits_share_their_weight() -> None:
    scored = ScoredNodes(
        (torch.tensor([5, 2, 9]), torch.tensor([9, 7])),
        (torch.tensor([0, 1, 0]), torch.tensor([0, 1])),
        2,
    )
    first, second = scored.sample_weights(METRICS["accuracy"])
    assert torch.equal(first[:, 2], second[:, 0])
    assert not torch.equal(first[:, 0], first[:, 1])
    assert scored.count == 4
    assert first.mean() == pytest.approx(1.0, abs=0.05)


def test_interval_of_an_accuracy_is_binomial() -> None:
    n = 400
    y = torch.zeros(n, dtype=torch.long)
    correct = torch.arange(n) < 0.8 * n
    probabilities = torch.stack([correct, ~correct], 1).double()
    score = bootstrap_score(
        ScoredNodes((torch.arange(n),), (y,), 2), METRICS["accuracy"], [probabilities]
    )
    half = 1.96 * math.sqrt(0.8 * 0.2 / n)
    assert score.value == 0.8
    assert score.nodes == n
    assert score.low == pytest.approx(0.8 - half, abs=0.006)
    assert score.high == pytest.approx(0.8 + half, abs=0.006)


def test_samples_without_a_class_are_left_out() -> None:
    y = torch.tensor([0, 0, 0, 1])
    scored = ScoredNodes((torch.arange(4),), (y,), 2)
    probabilities = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.4, 0.6]])
    weights = scored.sample_weights(METRICS["roc_auc"])
    values = scored.sample_scores(METRICS["roc_auc"], [probabilities], weights)
    undefined = (weights[0][:, 3] == 0) | (weights[0][:, :3].sum(1) == 0)
    assert torch.equal(values.isnan(), undefined)
    low, high = interval(values)
    assert 0 <= low <= high <= 1
    score = bootstrap_score(scored, METRICS["roc_auc"], [probabilities])
    assert score.low <= score.value <= score.high


def test_no_defined_sample_has_no_interval() -> None:
    assert np.isnan(interval(torch.tensor([math.nan]))).all()


def test_many_nodes_get_fewer_samples() -> None:
    nodes = torch.arange(50_000)
    scored = ScoredNodes((nodes,), (nodes % 2,), 2)
    assert scored.sample_weights(METRICS["accuracy"])[0].shape == (200, 50_000)


@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
def test_bins_of_scores_hardly_change_a_ranking_metric(name: str) -> None:
    y, probabilities = predictions(3000, 2, 0)
    y = (torch.arange(3000) % 10 == 0).long()  # rare positive nodes
    probabilities[:, 1] += 0.3 * y
    probabilities = probabilities / probabilities.sum(1, keepdim=True)
    scored = ScoredNodes((torch.arange(3000),), (y,), 2)
    weights = [scored.sample_weights(METRICS[name])[0][:50]]
    values = scored.sample_scores(METRICS[name], [probabilities], weights)
    exact = METRICS[name].value(
        probabilities.expand(50, -1, -1), y.expand(50, -1), weights[0].double()
    )
    assert exact.std() > 0.005
    torch.testing.assert_close(values, exact, atol=0.001, rtol=0)


def test_perfect_predictions_have_the_limit_of_the_rule_of_three() -> None:
    y = torch.tensor([0, 1] * 15)
    rows = torch.nn.functional.one_hot(y).double()
    score = bootstrap_score(ScoredNodes((torch.arange(30),), (y,), 2), METRICS["accuracy"], [rows])
    assert (score.value, score.high) == (1.0, 1.0)
    assert score.low == pytest.approx(0.9)
