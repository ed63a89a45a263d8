"""Bootstrap samples of scored nodes: confidence intervals of scores and of their differences.

A bootstrap sample gives every node a weight that is Poisson distributed with mean 1, as if nodes
were drawn with replacement. A node that is part of several validation splits has the same weight in
all of them, because its predictions are not independent. All samples depend on a fixed seed only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from nfgnn.auto.result import Score
from nfgnn.training import Metric

SAMPLES = 1000
_LEAST_SAMPLES = 200
_SEED = 20
_MAX_WEIGHTS = 10_000_000
"""Bound of samples × nodes, which keeps the time below a second."""
_SCORE_BINS = 250
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
        if splits >= len(self.nodes):
            return self
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

    def sample_weights(self, metric: Metric) -> list[Tensor]:
        """Return bootstrap samples: the weights of the nodes of every split, ``[samples, n]``."""
        samples = SAMPLES
        if metric.uses == "ranking" and self.num_classes > 2:
            samples = _LEAST_SAMPLES  # every sample is sorted once per class
        return [weights[:samples] for weights in self._weights]

    @cached_property
    def _weights(self) -> list[Tensor]:
        # Large graphs have fewer samples, which their narrow intervals allow.
        all_nodes, positions = torch.cat(self.nodes).unique(return_inverse=True)
        affordable = _MAX_WEIGHTS // max(1, len(positions))
        count = min(SAMPLES, max(_LEAST_SAMPLES, affordable))
        drawn = np.random.default_rng(_SEED).poisson(1.0, (count, len(all_nodes)))
        weights = torch.from_numpy(drawn.astype(np.float32))
        sizes = [len(nodes) for nodes in self.nodes]
        return [weights[:, columns] for columns in positions.split(sizes)]

    def sample_scores(
        self, metric: Metric, probabilities: Sequence[Tensor], weights: Sequence[Tensor]
    ) -> Tensor:
        """Return the score of every bootstrap sample; NaN where the metric is undefined.

        A sample without a node of some class in one split has the mean of the other splits.

        Args:
            metric: the metric.
            probabilities: of the nodes of every split, ``[n, C]`` each.
            weights: of the same nodes, ``[samples, n]`` each.
        """
        per_split = [
            self._weighted(metric, rows, y, weight)
            for rows, y, weight in zip(probabilities, self.labels, weights)
        ]
        return torch.stack(per_split).nanmean(0)

    def _weighted(self, metric: Metric, rows: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """Return the scores of one split. Nodes that the metric does not distinguish are merged."""
        if metric.uses == "class":
            one_hot = torch.eye(self.num_classes, dtype=torch.float64)
            merged = _merge(rows.argmax(1), one_hot, y, weight)
            return self._values(metric, *merged)
        if metric.uses == "ranking" and self.num_classes == 2 and len(y) > 2 * _SCORE_BINS:
            everyone = torch.ones_like(weight[:1])
            bins, means = _bins_of_scores(rows)
            merged = _merge(bins, means, y, torch.cat([everyone, weight]))
            values = self._values(metric, *merged)
            # Bins move all values alike, so the exact score corrects them.
            return values[1:] + metric.compute(rows, y, 2) - values[0]
        return self._values(metric, rows, y, weight)

    def _values(self, metric: Metric, rows: Tensor, y: Tensor, weight: Tensor) -> Tensor:
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


def _bins_of_scores(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Sort the nodes of two classes by their scores into bins of equal size.

    Returns:
        The bin of every node, and the mean probabilities of every bin, ``[bins, 2]``.
    """
    scores = rows[:, 1].double().contiguous()
    positions = torch.linspace(0, 1, _SCORE_BINS + 1, dtype=torch.float64)[1:-1]
    limits = scores.sort().values[(positions * len(scores)).long()].unique()
    bins = torch.searchsorted(limits, scores, right=True)
    sizes = bins.bincount(minlength=len(limits) + 1).clamp(min=1)
    sums = rows.new_zeros((len(sizes), 2), dtype=torch.float64).index_add_(0, bins, rows.double())
    return bins, sums / sizes[:, None]


def _merge(
    groups: Tensor, probabilities: Tensor, y: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Merge nodes of the same group and label into one whose weight is their sum.

    Args:
        groups: group of every node, ``[n]``.
        probabilities: of every group, ``[groups, C]``.
        y: labels, ``[n]``.
        weight: ``[samples, n]``.

    Returns:
        Probabilities, labels and weights of the merged nodes.
    """
    num_classes = probabilities.shape[1]
    cells, cell_of = (groups * num_classes + y).unique(return_inverse=True)
    sums = weight.new_zeros(len(weight), len(cells)).index_add_(1, cell_of, weight)
    return probabilities[cells // num_classes], cells % num_classes, sums


def interval(samples: Tensor, level: float = 0.95) -> tuple[float, float]:
    """Return the limits of a confidence interval of bootstrap samples; NaN if all are undefined."""
    defined = samples[~samples.isnan()].double()
    if len(defined) == 0:
        return torch.nan, torch.nan
    tail = (1 - level) / 2
    limits = torch.quantile(defined, torch.tensor([tail, 1 - tail], dtype=torch.float64))
    return float(limits[0]), float(limits[1])


def bootstrap_score(scored: ScoredNodes, metric: Metric, probabilities: Sequence[Tensor]) -> Score:
    """Return the score of predictions with its 95 % confidence interval.

    Samples that all agree, or on which the metric is not defined, have the limits of the rule of
    three: three nodes more or less.

    Args:
        scored: the nodes.
        metric: the metric.
        probabilities: of the nodes of every split, ``[n, C]`` each.
    """
    value = scored.score(metric, probabilities)
    samples = scored.sample_scores(metric, probabilities, scored.sample_weights(metric))
    low, high = interval(samples)
    if np.isnan(low):
        low = value
        high = value
    if low == high and metric.greater_is_better:
        # Samples of perfect predictions do not differ. The rule of three gives the other limit.
        low = max(value - 3 / scored.count, 0.0)
        high = min(value + 3 / scored.count, 1.0)
    # The value lies in its interval, also where few samples are defined.
    return Score(value, min(low, value), max(high, value), scored.count)
