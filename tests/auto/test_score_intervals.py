"""Confidence intervals of scores, against the exact distribution of the bootstrap."""

import pytest
import torch
from helpers.candidates import noisy_predictions, predictions, validation_split
from scipy.stats import beta

from nfgnn.auto.candidate import ValidationSplit
from nfgnn.auto.score_intervals import bootstrap_scores, score_with_interval
from nfgnn.training import METRICS

ACCURACY = METRICS["accuracy"]


def test_accuracy_has_the_interval_of_its_beta_distribution() -> None:
    """Of n exponential weights, k over all of them is distributed as Beta(k, n - k)."""
    labels = [0] * 30 + [1] * 70
    split = validation_split(labels)
    score = score_with_interval([predictions([0] * 100)], [split], ACCURACY, samples=20_000)
    assert score.value == pytest.approx(0.3)
    assert score.nodes == 100
    low, high = beta(30, 70).ppf([0.025, 0.975])
    assert score.low == pytest.approx(low, abs=0.005)
    assert score.high == pytest.approx(high, abs=0.005)


def test_the_same_nodes_in_several_splits_do_not_narrow_the_interval() -> None:
    labels = [0, 1] * 20
    split = validation_split(labels)
    shares = noisy_predictions(split.labels, 2, 1.0, seed=0)
    once = score_with_interval([shares], [split], ACCURACY)
    twice = score_with_interval([shares, shares], [split, split], ACCURACY)
    assert (twice.low, twice.high, twice.nodes) == (once.low, once.high, 40)
    other = validation_split(labels, first_node=40)
    both = score_with_interval([shares, shares], [split, other], ACCURACY)
    assert both.high - both.low < 0.9 * (once.high - once.low)
    assert both.nodes == 80


def test_perfect_predictions_have_the_bound_of_the_rule_of_three() -> None:
    labels = [0, 1] * 15
    score = score_with_interval([predictions(labels)], [validation_split(labels)], ACCURACY)
    assert (score.value, score.high) == (1.0, 1.0)
    assert score.low == pytest.approx(0.9)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_every_metric_has_an_interval_around_its_value(metric) -> None:
    labels = torch.tensor([0, 1, 2] * 12 + [2])
    split = ValidationSplit(torch.arange(len(labels)), labels)
    shares = noisy_predictions(labels, 3, 1.0, seed=0)
    score = score_with_interval([shares], [split], metric)
    assert score.low < score.value < score.high
    assert score == score_with_interval([shares], [split], metric)
    sampled = bootstrap_scores([shares], [split], metric)
    assert float(sampled.median()) == pytest.approx(score.value, abs=0.05)
