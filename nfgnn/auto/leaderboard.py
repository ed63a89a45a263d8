"""The leaderboard of a search: all configurations that were trained to the end, ranked."""

from collections import Counter
from collections.abc import Sequence

from nfgnn.auto.candidate import Candidate, ValidationSplit, mean_score
from nfgnn.auto.result import LeaderboardEntry
from nfgnn.auto.score_intervals import score_with_interval
from nfgnn.training import METRICS, Metric


def rank_candidates(
    candidates: Sequence[Candidate], splits: Sequence[ValidationSplit], metric: Metric
) -> list[Candidate]:
    """Return the candidates, the best first.

    Those that were trained on more splits come first, because the score of a single small split is
    too uncertain to compare. Equal scores are ranked by the log loss, then by the given order.
    """
    sign = -1.0 if metric.greater_is_better else 1.0

    def rank(candidate: Candidate) -> tuple[float, float, float]:
        score = mean_score(candidate.probabilities, splits, metric)
        loss = mean_score(candidate.probabilities, splits, METRICS["log_loss"])
        return (-candidate.splits, sign * score, loss)

    return sorted(candidates, key=rank)


def build_leaderboard(
    ranked: Sequence[Candidate], splits: Sequence[ValidationSplit], metric: Metric
) -> tuple[LeaderboardEntry, ...]:
    """Return one entry per candidate, in the order of :func:`rank_candidates`."""
    models: Counter[str] = Counter()
    entries = []
    for candidate in ranked:
        model = candidate.config.model
        models[model] += 1
        entries.append(
            LeaderboardEntry(
                name=model if models[model] == 1 else f"{model} {models[model]}",
                config=candidate.config,
                family=candidate.family,
                origin=candidate.origin,
                splits=candidate.splits,
                validation=score_with_interval(candidate.probabilities, splits, metric),
                seconds=candidate.seconds,
            )
        )
    return tuple(entries)
