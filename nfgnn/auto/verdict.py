"""The value of features and edges in words.

A gain is only claimed if its 95 % interval does not include 0.
"""

from dataclasses import dataclass, replace

from nfgnn.auto.result import (
    BOTH,
    FEATURES,
    LINKS,
    Comparison,
    GraphValue,
    HomophilyInterval,
    LeaderboardEntry,
)
from nfgnn.training import Metric

_LARGE = 0.02  # a gain that matters; if it cannot be excluded, the sentence says so
_NEARLY_CERTAIN = 0.9
_FAMILIES = {FEATURES: "features alone", LINKS: "edges alone", BOTH: "both together"}


@dataclass(frozen=True)
class Baseline:
    """The best model and the best constant prediction, by one metric."""

    metric: Metric
    model: float
    constant: float


def verdict(
    value: GraphValue,
    best: LeaderboardEntry,
    metric: Metric,
    baseline: Baseline,
    majority: str,
    models: int,
    has_features: bool = True,
    features_are_compared: bool = True,
) -> GraphValue:
    """Return the value of a graph with its sentences.

    Args:
        value: the numbers.
        best: the best model.
        metric: the metric of the leaderboard.
        baseline: scores by the metric of ``value.learnable``.
        majority: name of the largest class of the validation nodes.
        models: number of models that the best was chosen from.
        has_features: whether the graph has features of its own.
        features_are_compared: whether the best model was also trained without features, or does not
            use edges. Otherwise its gain over LINK may be due to the model.
    """
    sentences = [_learned(value.learnable, best, metric, baseline, majority, models)]
    if is_gain(value.learnable, baseline.metric):
        if metric.name == "accuracy" and baseline.metric != metric:
            sentences.append(
                f"Its accuracy is not clearly above that of always predicting {majority!r}, "
                "because most validation nodes are in this class."
            )
        sentences.append(_reached(value.families, metric))
        sentences.append(_contribution("edges", value.graph_helps, metric, best.validation.nodes))
        if has_features:
            nodes = best.validation.nodes
            sentences.append(
                _contribution("features", value.features_help, metric, nodes, features_are_compared)
            )
        else:
            sentences.append(
                "The graph has no features of its own; models use the degrees of the nodes instead."
            )
        sentences += _by_homophily(value.intervals)
    return replace(value, sentences=tuple(sentences))


def gain(comparison: Comparison, metric: Metric) -> tuple[float, float, float]:
    """Return difference and interval so that positive values are better, also for a loss."""
    if metric.greater_is_better:
        return comparison.difference, comparison.low, comparison.high
    return -comparison.difference, -comparison.high, -comparison.low


def is_gain(comparison: Comparison, metric: Metric) -> bool:
    """Whether the first of two predictions is better, and the 95 % interval supports it."""
    return gain(comparison, metric)[1] > 0


def shown_difference(value: float, metric: Metric) -> str:
    """Return a gain or its limit as text, in points for a metric that is a percentage."""
    if metric.greater_is_better:
        return f"{100 * value:.1f}".replace("-0.0", "0.0").replace("-", "−")
    return f"{value:.3f}".replace("-0.000", "0.000").replace("-", "−")


def shown_confidence(confidence: float) -> str:
    """Return a share of bootstrap samples as text, without claiming certainty."""
    if confidence > 0.999:
        return "above 99.9 %"
    if confidence < 0.001:
        return "below 0.1 %"
    return f"{100 * confidence:.1f} %" if confidence > 0.99 else f"{100 * confidence:.0f} %"


def _learned(
    comparison: Comparison,
    best: LeaderboardEntry,
    chosen_metric: Metric,
    baseline: Baseline,
    majority: str,
    models: int,
) -> str:
    metric = baseline.metric
    reason = ""
    if chosen_metric.name == "macro_f1":
        reason = (
            f"; {chosen_metric.title} is not compared with a constant prediction, because random "
            "guesses score more"
        )
    constant = f"always predicting {majority!r}"
    if metric.name == "kappa":
        return (
            f"The best model, {best.name}, agrees with the labels more than chance does: "
            f"{metric.title} is {metric.shown(baseline.model, 1)} on {best.validation.nodes:,} "
            f"validation nodes, and {metric.shown(baseline.constant, 1)} for {constant}."
        )
    if metric.name in ("roc_auc", "average_precision", "log_loss"):
        constant = "a constant prediction"
    scores = (
        f"scores {metric.shown(baseline.model, 1)}; {constant} scores "
        f"{metric.shown(baseline.constant, 1)} ({metric.title} on {best.validation.nodes:,} "
        f"validation nodes{reason})"
    )
    if is_gain(comparison, metric):
        return f"The best model, {best.name}, {scores}."
    text = f"the best model {scores}. {_corrected_difference(comparison, metric, models)}"
    return f"{_doubt(comparison, metric, best.validation.nodes)}: {text}"


def _doubt(comparison: Comparison, metric: Metric, nodes: int) -> str:
    """Return how certain it is that the features and edges teach nothing."""
    value, _, high = gain(comparison, metric)
    source = "from these features and edges"
    if high > 0 and comparison.confidence >= _NEARLY_CERTAIN:
        return f"It is not certain that anything can be learned {source}"
    if value > _LARGE:
        return f"{nodes:,} validation nodes are too few to tell whether anything can be learned"
    nothing = f"nothing can be learned {source}"
    if high > _LARGE:
        return f"As far as {nodes:,} validation nodes show, {nothing}"
    return nothing[0].upper() + nothing[1:]


def _corrected_difference(comparison: Comparison, metric: Metric, models: int) -> str:
    chosen = f", corrected for choosing the best of {models}," if models > 1 else ""
    value, low, high = (shown_difference(part, metric) for part in gain(comparison, metric))
    return f"The gain{chosen} is {value}{_unit(metric)} (95 % interval {low} to {high})."


def _reached(families: dict[str, LeaderboardEntry], metric: Metric) -> str:
    parts = []
    for family, words in _FAMILIES.items():
        if family in families:
            entry = families[family]
            parts.append(f"{words} {metric.shown(entry.validation.value, 1)} ({entry.name})")
    text = f"The best scores on validation nodes are: {_joined(parts)}."
    if len({entry.splits for entry in families.values()}) > 1:
        text += (
            " They are means over different numbers of splits; the comparisons that follow use "
            "the splits that both models were trained on."
        )
    return text


def _joined(parts: list[str]) -> str:
    """Return an enumeration."""
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _contribution(
    what: str,
    comparison: Comparison | None,
    metric: Metric,
    nodes: int,
    is_same_model: bool = True,
) -> str:
    """Return whether the edges or the features help.

    A gain over a model of another kind only (not ``is_same_model``) may have other reasons.
    """
    if comparison is None:
        return (
            f"It is unknown whether the {what} help: no two models were trained of which only one "
            "uses them."
        )
    value, low, high = gain(comparison, metric)
    size = f"{shown_difference(abs(value), metric)}{_unit(metric)}"
    change = f"loses {size} against" if value < 0 else f"gains {size} over"
    numbers = (
        f"the best model that uses them, {comparison.first}, {change} the best one that ignores "
        f"them, {comparison.second}, after a correction for choosing the best (95 % interval of "
        f"the gain {shown_difference(low, metric)} to {shown_difference(high, metric)}; confidence "
        f"that the {what} help {shown_confidence(comparison.confidence)})."
    )
    if low > 0 and not is_same_model:
        return (
            f"The {what} seem to help, but there was no time to train the best model without "
            f"them: {numbers}"
        )
    if low > 0:
        return f"The {what} help: {numbers}"
    if high > 0 and comparison.confidence >= _NEARLY_CERTAIN:
        return f"It is not certain that the {what} help: {numbers}"
    if value > _LARGE:
        return f"{nodes:,} validation nodes are too few to tell whether the {what} help: {numbers}"
    if high > _LARGE:
        return f"As far as {nodes:,} validation nodes show, the {what} do not help: {numbers}"
    return f"The {what} do not help: {numbers}"


def _unit(metric: Metric) -> str:
    return " points" if metric.greater_is_better else ""


def _by_homophily(intervals: tuple[HomophilyInterval, ...]) -> list[str]:
    """Return which intervals of local homophily benefit from the edges, and which lose."""
    compared = [part for part in intervals if part.gain_low is not None]
    if not compared:
        return []
    benefit = [part for part in compared if part.gain_low is not None and part.gain_low > 0]
    lose = [part for part in compared if part.gain_high is not None and part.gain_high < 0]
    sentences = []
    if benefit:
        sentences.append(
            f"By local homophily h, nodes with {_listed(benefit)} benefit from the edges."
        )
    if lose:
        sentences.append(f"Nodes with {_listed(lose)} are predicted worse with the edges.")
    if not sentences:
        sentences.append("No interval of local homophily clearly benefits from the edges.")
    return sentences


def _listed(intervals: list[HomophilyInterval]) -> str:
    parts = []
    for part in intervals:
        assert part.graph is not None
        assert part.features is not None
        points = f"{100 * (part.graph - part.features):+.1f}".replace("-", "−")
        parts.append(
            f"h from {part.low:.1f} to {part.high:.1f} ({points} points of accuracy, "
            f"{part.nodes:,} nodes)"
        )
    return _joined(parts)
