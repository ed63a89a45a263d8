"""What the features and the edges of a graph contribute, from predictions of validation nodes.

The best of many models looks better on the nodes that it was chosen on than on others, and a family
with many models profits more from that than a family with few. Comparisons are therefore corrected
by the out-of-bag bootstrap (Tsamardinos et al., 2018): in every bootstrap sample the best model of
a family is chosen on the sampled nodes and scored on the nodes that were not sampled. What it loses
against the best model of all nodes is subtracted from the score of its family.

What a configuration loses without the edges, or without the features, is part of these comparisons:
see :mod:`nfgnn.auto.ablation`.

Local homophily is computed from the labels of all nodes, as ``nfgnn analyze`` does. It only sorts
validation nodes for the report, and nothing is selected by it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from nfgnn.analysis import homophily_interval, local_homophily
from nfgnn.auto.ablation import SUFFIXES
from nfgnn.auto.bootstrap import ScoredNodes, bootstrap_score, interval
from nfgnn.auto.candidate import Candidate
from nfgnn.auto.kappa import KAPPA
from nfgnn.auto.result import (
    BOTH,
    FEATURES,
    LINKS,
    Comparison,
    GraphValue,
    HomophilyInterval,
    LeaderboardEntry,
)
from nfgnn.auto.verdict import Baseline, verdict
from nfgnn.training import METRICS, Metric

CONSTANT = "constant prediction"
"""Name of the prediction that a model must exceed to have learned anything."""
_INTERVALS = 5
_LEAST_NODES = 10  # of an interval of local homophily, to compare two models on it
_MOST_MODELS = 24  # of a family; models below these are hardly ever the best of a sample
# The mean over samples needs fewer of them than the limits of an interval.
_SELECTION_SAMPLES = 100
_LEAST_SELECTION_SAMPLES = 20
_CLEAR = 0.99  # share of bootstrap samples
_MAX_WEIGHTS = 10_000_000  # samples × nodes × models, to bound the time


@dataclass(frozen=True)
class ValidationPredictions:
    """What all models of a leaderboard predict for validation nodes.

    Args:
        entries: the leaderboard, the best first.
        probabilities: of every entry by its name: one tensor ``[n, C]`` per split, in the order of
            ``scored``. An entry may lack the last splits.
        scored: the validation nodes of every split.
        metric: the metric of the leaderboard.
        ablations: entries that are not in the leaderboard, because they were trained without edges
            or without features.
    """

    entries: Sequence[LeaderboardEntry]
    probabilities: Mapping[str, Sequence[Tensor]]
    scored: ScoredNodes
    metric: Metric
    ablations: Sequence[LeaderboardEntry] = ()
    _selection_scores: dict[tuple[str, int], tuple[Tensor, Tensor]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        candidates: Sequence[Candidate],
        leaderboard: Sequence[LeaderboardEntry],
        scored: ScoredNodes,
        metric: Metric,
        ablations: Sequence[Candidate] = (),
    ) -> "ValidationPredictions":
        """Return the predictions of ranked candidates.

        Args:
            candidates: the best first.
            leaderboard: their entries, in the same order.
            scored: the validation nodes of every split.
            metric: the metric of the leaderboard.
            ablations: configurations that were trained without edges or without features.
        """
        others = []
        for candidate in ablations:
            nodes = scored.first(candidate.splits)
            others.append(
                LeaderboardEntry(
                    f"{candidate.config.model} {SUFFIXES[candidate.family]}",
                    candidate.config,
                    candidate.family,
                    candidate.origin,
                    candidate.splits,
                    bootstrap_score(nodes, metric, candidate.probabilities),
                    candidate.seconds,
                )
            )
        entries = [*leaderboard, *others]
        probabilities = {
            entry.name: candidate.probabilities
            for entry, candidate in zip(entries, [*candidates, *ablations])
        }
        return cls(leaderboard, probabilities, scored, metric, tuple(others))

    def family(self, *families: str) -> list[LeaderboardEntry]:
        """Return the entries of some families, the best first, with the ablations."""
        found = [entry for entry in self.entries if entry.family in families]
        for ablation in self.ablations:
            if ablation.family in families:
                value = ablation.validation.value
                better = [self.metric.is_better(value, entry.validation.value) for entry in found]
                place = better.index(True) if any(better) else len(found)
                found.insert(place, ablation)
        return found

    def by_metric_of_chance(self) -> "ValidationPredictions":
        """Return the predictions with a metric that no prediction without knowledge exceeds.

        That is the score of the best constant prediction for every metric but macro-F1, by which
        random guesses are better than a constant. Balanced accuracy takes its place.
        """
        if self.metric == METRICS["macro_f1"]:
            return replace(self, metric=METRICS["balanced_accuracy"], _selection_scores={})
        return self

    def score(self, name: str) -> float:
        """Return the score of an entry, or of the best constant prediction."""
        splits = len(self.scored.nodes) if name == CONSTANT else self._splits(name)
        scored = self.scored.first(splits)
        return scored.score(self.metric, self._predictions(name, scored))

    def compare(
        self, first: Sequence[LeaderboardEntry], second: Sequence[LeaderboardEntry]
    ) -> Comparison:
        """Compare the best of two groups of entries, corrected for choosing the best.

        Args:
            first: entries, the best first.
            second: the same; no entry stands for the best constant prediction.
        """
        splits = min(self._splits(group[0].name) for group in (first, second) if group)
        scored = self.scored.first(splits)
        groups = [self._group(group, splits) for group in (first, second)]
        weights = scored.sample_weights(self.metric)
        best = [self._predictions(group[0], scored) for group in groups]
        samples = [scored.sample_scores(self.metric, rows, weights) for rows in best]
        values = [scored.score(self.metric, rows) for rows in best]
        loss = [self._selection_loss(group, scored) for group in groups]
        correction = loss[0] - loss[1]
        difference = values[0] - values[1] - correction
        differences = samples[0] - samples[1] - correction
        low, high = interval(differences)
        if low == high and self.metric.greater_is_better:
            # Both predict the same in all samples. The rule of three bounds a difference that
            # the samples do not show.
            low -= 3 / scored.count
            high += 3 / scored.count
        defined = differences[~differences.isnan()]
        better = defined > 0 if self.metric.greater_is_better else defined < 0
        confidence = float(better.double().mean())
        if len(defined) == 0:
            # Nothing is known about a metric that no bootstrap sample defines.
            low = -abs(difference)
            high = abs(difference)
            confidence = 0.5
        return Comparison(groups[0][0], groups[1][0], difference, low, high, confidence)

    def _splits(self, name: str) -> int:
        return len(self.probabilities[name])

    def _group(self, entries: Sequence[LeaderboardEntry], splits: int) -> list[str]:
        """Return the names of entries that were trained on enough splits, the best first."""
        if not entries:
            return [CONSTANT]
        complete = [entry.name for entry in entries if self._splits(entry.name) >= splits]
        return complete[:_MOST_MODELS]

    def _predictions(self, name: str, scored: ScoredNodes) -> list[Tensor]:
        splits = len(scored.nodes)
        if name == CONSTANT:
            return [_constant(y, scored.num_classes) for y in scored.labels]
        return list(self.probabilities[name][:splits])

    def _selection_loss(self, names: Sequence[str], scored: ScoredNodes) -> float:
        """Return by how much the score of the best entry is too good, because it was chosen."""
        if len(names) == 1:
            return 0.0
        pairs = [self._scores_inside_and_outside(name, scored) for name in names]
        in_sample = torch.stack([inside for inside, _ in pairs])
        out_of_sample = torch.stack([outside for _, outside in pairs])
        if not self.metric.greater_is_better:
            in_sample = -in_sample
        chosen = in_sample.nan_to_num(nan=-torch.inf).argmax(0)
        losses = out_of_sample[0] - out_of_sample.gather(0, chosen[None])[0]
        mean = float(losses.nanmean().nan_to_num(0.0))
        # A choice on fewer nodes is not better; a negative loss is noise of the samples.
        return max(0.0, mean) if self.metric.greater_is_better else min(0.0, mean)

    def _scores_inside_and_outside(self, name: str, scored: ScoredNodes) -> tuple[Tensor, Tensor]:
        """Return the scores on the nodes of every bootstrap sample and on the nodes left out."""
        key = (name, len(scored.nodes))
        if key not in self._selection_scores:
            work = sum(map(len, scored.nodes)) * _MOST_MODELS
            samples = max(_LEAST_SELECTION_SAMPLES, min(_SELECTION_SAMPLES, _MAX_WEIGHTS // work))
            weights = [weight[:samples] for weight in scored.sample_weights(self.metric)]
            left_out = [(weight == 0).float() for weight in weights]
            rows = self._predictions(name, scored)
            self._selection_scores[key] = (
                scored.sample_scores(self.metric, rows, weights),
                scored.sample_scores(self.metric, rows, left_out),
            )
        return self._selection_scores[key]


def graph_value(
    predictions: ValidationPredictions,
    edge_index: Tensor | None,
    y: Tensor,
    class_names: Sequence[str],
    has_features: bool = True,
) -> GraphValue:
    """Return what features alone, edges alone and both together reach.

    Args:
        predictions: of all models.
        edge_index: edges in both directions, ``[2, 2E]``; ``None`` for a graph without edges.
        y: labels of all nodes, -1 where unlabelled.
        class_names: names of the classes.
        has_features: whether the graph has features of its own. Otherwise they are computed from
            the edges, and nothing is said about them.
    """
    families: dict[str, LeaderboardEntry] = {}
    for family in (FEATURES, LINKS, BOTH):
        entries = predictions.family(family)
        if entries:
            families[family] = entries[0]
    without_edges = predictions.family(FEATURES)
    with_edges = predictions.family(LINKS, BOTH)
    without_features = predictions.family(LINKS)
    with_features = predictions.family(FEATURES, BOTH)
    graph_helps = None
    if without_edges and with_edges:
        graph_helps = predictions.compare(with_edges, without_edges)
    features_help = None
    if has_features and without_features and with_features:
        features_help = predictions.compare(with_features, without_features)
    intervals: tuple[HomophilyInterval, ...] = ()
    if edge_index is not None and edge_index.size(1) > 0:
        intervals = _by_homophily(predictions, local_homophily(edge_index, y))
    learning = _predictions_of_learning(predictions)
    best = predictions.entries[0]
    value = GraphValue(
        families=families,
        graph_helps=graph_helps,
        features_help=features_help,
        learnable=learning.compare(predictions.entries, []),
        intervals=intervals,
        sentences=(),
    )
    counts = torch.cat(predictions.scored.labels).bincount(minlength=len(class_names))
    return verdict(
        value,
        best=best,
        metric=predictions.metric,
        baseline=Baseline(learning.metric, learning.score(best.name), learning.score(CONSTANT)),
        majority=class_names[int(counts.argmax())],
        models=len(predictions.entries),
        has_features=has_features,
        features_are_compared=not with_features
        or with_features[0].family != BOTH
        or any(entry.family == LINKS for entry in predictions.ablations),
    )


def _predictions_of_learning(predictions: ValidationPredictions) -> ValidationPredictions:
    """Return the predictions with the metric that shows whether anything was learned.

    Where one class has most of the validation nodes, a model may tell the classes apart and still
    be less accurate than the constant prediction, above all if it was trained on as many nodes of
    every class. Cohen's kappa shows that. It must do so clearly, because it is the second try.
    """
    learning = predictions.by_metric_of_chance()
    entries = predictions.entries
    if learning.metric != METRICS["accuracy"] or learning.compare(entries, []).low > 0:
        return learning
    beyond_chance = replace(learning, metric=KAPPA, _selection_scores={})
    comparison = beyond_chance.compare(entries, [])
    is_clear = comparison.low > 0 and comparison.confidence >= _CLEAR
    return beyond_chance if is_clear else learning


def _constant(y: Tensor, num_classes: int) -> Tensor:
    """Return the best constant prediction: the shares of the classes, for every node."""
    counts = y.bincount(minlength=num_classes).double()
    return (counts / counts.sum()).expand(len(y), -1)


def _by_homophily(predictions: ValidationPredictions, h: Tensor) -> tuple[HomophilyInterval, ...]:
    """Return the accuracy of the best models with and without edges by local homophily."""
    best = [predictions.family(FEATURES)[:1], predictions.family(LINKS, BOTH)[:1]]
    names = [group[0].name for group in best if group]
    if not names:
        return ()
    splits = min(len(predictions.probabilities[name]) for name in names)
    scored = predictions.scored.first(splits)
    nodes = torch.cat(scored.nodes)
    labels = torch.cat(scored.labels)
    correct: list[Tensor | None] = []
    for group in best:
        if not group:
            correct.append(None)
            continue
        rows = torch.cat(list(predictions.probabilities[group[0].name][:splits]))
        correct.append((rows.argmax(1) == labels).double())
    weights = torch.cat(scored.sample_weights(predictions.metric), 1).double()
    place = homophily_interval(h[nodes], _INTERVALS)
    found = []
    for i in range(_INTERVALS):
        inside = place == i
        accuracies = [_mean(values, inside) for values in correct]
        count = len(nodes[inside].unique())
        gain: tuple[float, float] | tuple[None, None] = (None, None)
        if count >= _LEAST_NODES and correct[0] is not None and correct[1] is not None:
            gain = _gain_interval(correct[1] - correct[0], weights, inside)
        found.append(
            HomophilyInterval(
                i / _INTERVALS,
                (i + 1) / _INTERVALS,
                count,
                features=accuracies[0],
                graph=accuracies[1],
                gain_low=gain[0],
                gain_high=gain[1],
            )
        )
    return tuple(found)


def _mean(values: Tensor | None, inside: Tensor) -> float | None:
    if values is None or not bool(inside.any()):
        return None
    return float(values[inside].mean())


def _gain_interval(gain: Tensor, weights: Tensor, inside: Tensor) -> tuple[float, float]:
    """Return an interval of the mean gain that holds for all intervals of homophily at once."""
    weight = weights[:, inside]
    samples = (weight @ gain[inside]) / weight.sum(1)
    return interval(samples, level=1 - 0.05 / _INTERVALS)
