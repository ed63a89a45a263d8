"""Bootstrap samples of scored nodes: confidence intervals of scores and of their differences.

A bootstrap sample gives every node a weight that is Poisson distributed with mean 1, as if nodes
were drawn with replacement. A node that is part of several validation splits has the same weight in
all of them, because its predictions are not independent. All samples depend on a fixed seed only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nfgnn.auto.result import Score
from nfgnn.training import Metric

SAMPLES = 1000
_LEAST_SAMPLES = 100
_SEED = 20
_MAX_WORK = 100_000_000
"""Bound of samples × nodes × classes, which takes about a second."""
_BLOCK = 1 << 22


@dataclass(frozen=True)
class ScoredNodes:
    """The labelled nodes of one or several splits that predictions are scored on.

    The score of several splits is the mean of their scores.
    """

    nodes: tuple[Tensor, ...]
    """Indices of the nodes of every split."""
    labels: tuple[Tensor, ...]
    """Their labels."""
    num_classes: int

    @property
    def count(self) -> int:
        """Number of different nodes."""
        return len(torch.cat(self.nodes).unique())

    def first(self, splits: int) -> "ScoredNodes":
        """Return the nodes of the first splits only."""
        return ScoredNodes(self.nodes[:splits], self.labels[:splits], self.num_classes)

    def score(self, metric: Metric, probabilities: Sequence[Tensor]) -> float:
        """Return the mean over the splits of a metric.

        Args:
            metric: the metric.
            probabilities: of the nodes of every split, ``[n, C]`` each.
        """
        values = [
            metric.compute(rows, y, self.num_classes) for rows, y in zip(probabilities, self.labels)
        ]
        return sum(values) / len(values)

    def sample_weights(self, predictions: int = 1, samples: int = SAMPLES) -> list[Tensor]:
        """Draw bootstrap samples and return the weights of the nodes, ``[samples, n]`` per split.

        Args:
            predictions: number of predictions that the samples are for. Many predictions of many
                nodes get fewer samples, so that scoring them takes seconds.
            samples: largest number of samples.
        """
        all_nodes, positions = torch.cat(self.nodes).unique(return_inverse=True)
        rows = len(positions) * self.num_classes * predictions
        affordable = _MAX_WORK // max(1, rows)
        count = min(samples, max(_LEAST_SAMPLES, affordable))
        drawn = np.random.default_rng(_SEED).poisson(1.0, (count, len(all_nodes)))
        weights = torch.from_numpy(drawn.astype(np.float32))
        sizes = [len(nodes) for nodes in self.nodes]
        return [weights[:, columns] for columns in positions.split(sizes)]

    def sample_scores(
        self, metric: Metric, probabilities: Sequence[Tensor], weights: Sequence[Tensor]
    ) -> Tensor:
        """Return the score of every bootstrap sample; NaN where the metric is undefined.

        Args:
            metric: the metric.
            probabilities: of the nodes of every split, ``[n, C]`` each.
            weights: of :meth:`sample_weights`.
        """
        per_split = [
            self._weighted(metric, rows, y, weight)
            for rows, y, weight in zip(probabilities, self.labels, weights)
        ]
        return torch.stack(per_split).mean(0)

    def _weighted(self, metric: Metric, rows: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        block = max(1, _BLOCK // max(1, rows.numel()))
        values = []
        for part in weight.double().split(block):
            samples = len(part)
            value = metric.value(rows.expand(samples, -1, -1), y.expand(samples, -1), part)
            values.append(value.where(self._is_defined(metric, y, part), torch.nan))
        return torch.cat(values)

    def _is_defined(self, metric: Metric, y: Tensor, weight: Tensor) -> Tensor:
        sums = weight.new_zeros(len(weight), self.num_classes)
        sums.index_add_(1, y, weight)
        if metric.needs_every_class:
            return (sums > 0).all(1)
        return (sums > 0).any(1)


def interval(samples: Tensor) -> tuple[float, float]:
    """Return the limits of the 95 % interval of bootstrap samples; NaN if all are undefined."""
    defined = samples[~samples.isnan()].double()
    if len(defined) == 0:
        return torch.nan, torch.nan
    limits = torch.quantile(defined, torch.tensor([0.025, 0.975], dtype=torch.float64))
    return float(limits[0]), float(limits[1])


def bootstrap_score(scored: ScoredNodes, metric: Metric, probabilities: Sequence[Tensor]) -> Score:
    """Return the score of predictions with its 95 % confidence interval.

    Without a single bootstrap sample on which the metric is defined, the interval is the value.

    Args:
        scored: the nodes.
        metric: the metric.
        probabilities: of the nodes of every split, ``[n, C]`` each.
    """
    value = scored.score(metric, probabilities)
    samples = scored.sample_scores(metric, probabilities, scored.sample_weights())
    low, high = interval(samples)
    if np.isnan(low):
        low = value
        high = value
    # The value lies in its interval, also where few samples are defined.
    return Score(value, min(low, value), max(high, value), scored.count)
