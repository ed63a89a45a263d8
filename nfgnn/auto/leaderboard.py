"""The leaderboard of a search: all configurations that were trained to the end, ranked."""

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

    Those that were trained on more splits come first, because the score of a single small split is
    too uncertain to compare. Equal scores are ranked by the log loss, then by the given order.
    """
    sign = -1.0 if metric.greater_is_better else 1.0

    def rank(candidate: Candidate) -> tuple[float, float, float]:
        nodes = scored.first(candidate.splits)
        score = nodes.score(metric, candidate.probabilities)
        loss = nodes.score(METRICS["log_loss"], candidate.probabilities)
        return (-candidate.splits, sign * score, loss)

    return sorted(candidates, key=rank)


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
