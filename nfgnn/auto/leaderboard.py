"""The leaderboard of a search: all configurations that were trained to the end, ranked."""

import math
from collections import Counter
from collections.abc import Sequence

from nfgnn.auto.bootstrap import ScoredNodes, bootstrap_score
from nfgnn.auto.candidate import Candidate
from nfgnn.auto.result import LeaderboardEntry
from nfgnn.training import METRICS, Metric


def rank_candidates(
    candidates: Sequence[Candidate], scored: ScoredNodes, metric: Metric
) -> list[Candidate]:
    """Return the candidates, the best first.

    They are ranked by their :func:`regrets`, equal ones by the log loss, then in the given order.
    """
    behind = regrets([_split_scores(c, scored, metric) for c in candidates], scored, metric)
    losses = [_mean(_split_scores(c, scored, METRICS["log_loss"])) for c in candidates]
    ranks = list(zip(behind, losses))
    return [candidates[i] for i in sorted(range(len(candidates)), key=ranks.__getitem__)]


def regrets(values: Sequence[Sequence[float]], scored: ScoredNodes, metric: Metric) -> list[float]:
    """Return by how much every candidate is behind the best one that has all splits.

    A candidate with fewer splits is compared on those that both have, because some splits are
    harder than others. Two standard errors are then added to its regret, so that none wins by one
    lucky split.

    Args:
        values: the scores of every candidate on the first splits, or on all.
        scored: the validation nodes of every split.
        metric: the metric of the scores.
    """
    sign = 1.0 if metric.greater_is_better else -1.0
    most = max(map(len, values))
    best = max((own for own in values if len(own) == most), key=lambda own: sign * _mean(own))
    nodes = [scored.first(splits).count for splits in range(1, most + 1)]
    found = []
    for own in values:
        other = best[: len(own)]
        errors = [_standard_error(_mean(v), nodes[len(own) - 1], metric) for v in (own, other)]
        doubt = 2 * math.hypot(*errors) * math.sqrt(1 - len(own) / most)
        found.append(sign * (_mean(other) - _mean(own)) + doubt)
    return found


def _split_scores(candidate: Candidate, scored: ScoredNodes, metric: Metric) -> list[float]:
    """Return the score on every split that a candidate was trained on."""
    return [
        metric.compute(shares, labels, scored.num_classes)
        for shares, labels in zip(candidate.probabilities, scored.labels)
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _standard_error(value: float, nodes: int, metric: Metric) -> float:
    """Return the approximate standard error of a score."""
    if not metric.greater_is_better:
        # The deviation of losses is about as large as their mean.
        return value / math.sqrt(nodes)
    share = (value * nodes + 1) / (nodes + 2)  # never 0 or 1
    return math.sqrt(share * (1 - share) / nodes)


def build_leaderboard(
    ranked: Sequence[Candidate], scored: ScoredNodes, metric: Metric
) -> tuple[LeaderboardEntry, ...]:
    """Return one entry per candidate, in the order of :func:`rank_candidates`."""
    models: Counter[str] = Counter()
    entries = []
    for candidate in ranked:
        model = candidate.config.model
        models[model] += 1
        nodes = scored.first(candidate.splits)
        entries.append(
            LeaderboardEntry(
                name=model if models[model] == 1 else f"{model} {models[model]}",
                config=candidate.config,
                family=candidate.family,
                origin=candidate.origin,
                splits=candidate.splits,
                validation=bootstrap_score(nodes, metric, candidate.probabilities),
                seconds=candidate.seconds,
            )
        )
    return tuple(entries)
