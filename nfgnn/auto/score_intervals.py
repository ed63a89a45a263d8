"""Scores on validation and test nodes with confidence intervals.

The interval is that of a Bayesian bootstrap: every node gets a random weight from an exponential
distribution, the same one in all splits, and the interval covers 95 % of the weighted scores. No
weight is zero, so metrics that need nodes of every class stay defined.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from nfgnn.auto.candidate import ValidationSplit, mean_score
from nfgnn.auto.result import Score
from nfgnn.training import Metric

SAMPLES = 400
"""Number of bootstrap samples."""
_QUANTILES = (0.025, 0.975)
_CHUNK_VALUES = 2_000_000
"""Most values that one step of the computation holds."""


def score_with_interval(
    probabilities: Sequence[Tensor],
    splits: Sequence[ValidationSplit],
    metric: Metric,
    samples: int = SAMPLES,
) -> Score:
    """Return the mean of the metric over the splits with a 95 % confidence interval.

    Args:
        probabilities: of the nodes of every split, ``[n, C]`` each.
        splits: the nodes and their labels.
        metric: the metric.
        samples: number of bootstrap samples. Equal arguments give equal intervals.
    """
    splits = splits[: len(probabilities)]
    value = mean_score(probabilities, splits, metric)
    nodes = len(torch.cat([split.nodes for split in splits]).unique())
    sampled = bootstrap_scores(probabilities, splits, metric, samples)
    low, high = torch.quantile(sampled, sampled.new_tensor(_QUANTILES)).tolist()
    if metric.greater_is_better and high - low < 1e-12:
        # All predictions are right, or all are wrong. The rule of three gives the other bound.
        low = max(value - 3 / nodes, 0.0)
        high = min(value + 3 / nodes, 1.0)
    return Score(value, min(low, value), max(high, value), nodes)


def bootstrap_scores(
    probabilities: Sequence[Tensor],
    splits: Sequence[ValidationSplit],
    metric: Metric,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Tensor:
    """Return the score in every bootstrap sample, ``[samples]``.

    Equal splits and seeds have equal samples, so the scores of two models are paired.
    """
    total = torch.zeros(samples, dtype=torch.float64)
    weights = bootstrap_weights(splits, samples, seed)
    for shares, split, weight in zip(probabilities, splits, weights):
        chunks = []
        for part in weight.split(max(1, _CHUNK_VALUES // shares.numel())):
            labels = split.labels.expand(part.shape)
            chunks.append(metric.value(shares.expand(*part.shape, -1), labels, part))
        total += torch.cat(chunks)
    return total / len(splits)


def bootstrap_weights(
    splits: Sequence[ValidationSplit], samples: int, seed: int = 0
) -> list[Tensor]:
    """Return the weights of the nodes of every split, ``[samples, n]`` each.

    A node has the same weight in all splits, because its predictions there are not independent.
    """
    nodes = torch.cat([split.nodes for split in splits])
    distinct, position = nodes.unique(return_inverse=True)
    generator = torch.Generator().manual_seed(seed)
    weights = torch.empty(samples, len(distinct), dtype=torch.float64)
    weights.exponential_(generator=generator)
    sizes = [len(split.nodes) for split in splits]
    return [weights[:, part] for part in position.split(sizes)]
