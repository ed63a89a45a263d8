"""What a search for the best model has found, in words: for the terminal and for the page."""

from dataclasses import dataclass
from typing import Any

from nfgnn.auto import (
    BOTH,
    FEATURES,
    LINKS,
    AutoResult,
    Comparison,
    Score,
    gain,
    shown_difference,
)
from nfgnn.progress import duration
from nfgnn.training import Metric, RunConfig, find_metric

USES = {FEATURES: "features", LINKS: "edges", BOTH: "both"}
"""What the models of a family use."""
_REMARK = (
    "Intervals are 95 % bootstrap intervals over the nodes. The best validation score is "
    "optimistic because it is the best of {models}. Gains are corrected for this selection, so "
    "they can be smaller than the difference between two scores. Test nodes were not used in the "
    "search."
)


@dataclass(frozen=True)
class TileText:
    """One of the main results."""

    label: str
    value: str
    beside: str
    """What the value is compared with, or its interval."""
    text: str


@dataclass(frozen=True)
class AutoText:
    """The sentences of a report."""

    title: str
    summary: tuple[str, ...]
    """What was reached: the verdict first, then the scores on test nodes."""
    tiles: tuple[TileText, ...]
    """The main results: the score, what edges add and what features add."""
    findings: tuple[str, ...]
    """What features and edges contribute."""
    model: str
    """The best single model with the settings that differ from its defaults."""
    cost: str
    remark: str
    """How to read intervals and scores."""
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    """What makes the scores misleading."""


def describe_auto(result: AutoResult) -> AutoText:
    """Return the report of a search in words."""
    metric = find_metric(result.metric)
    sentences = result.value.sentences
    count = len(result.leaderboard)
    models = "1 configuration" if count == 1 else f"{count:,} configurations"
    return AutoText(
        title=f"{result.dataset}: the best of {models}",
        summary=(*sentences[:1], *_test_sentences(result, metric)),
        tiles=(
            _score_tile(result, metric),
            _gain_tile("Edges", result.value.graph_helps, metric),
            _gain_tile("Features", result.value.features_help, metric),
        ),
        findings=sentences[1:],
        model=_model_sentence(result.best.config),
        cost=_cost_sentence(result, models),
        remark=_REMARK.format(models=models),
        notes=result.notes,
        warnings=result.warnings,
    )


def changed_settings(config: RunConfig) -> dict[str, Any]:
    """Return the settings of a configuration that differ from the defaults of its model.

    Metric and selection rule are left out: they are the same for all configurations of a search.
    """
    defaults = RunConfig.resolve(config.model, {}, None, None, "none").settings()
    common = ("metric", "select")
    return {
        key: value
        for key, value in config.settings().items()
        if key not in common and value != defaults[key]
    }


def shown_score(score: Score, metric: Metric) -> str:
    """Return a score with its interval as text, such as ``84.0 % (80.1 to 88.2)``."""
    return f"{metric.shown(score.value, 1)} ({shown_limits(score, metric)})"


def shown_limits(score: Score, metric: Metric) -> str:
    """Return the limits of an interval as text."""
    low = metric.shown(score.low, 1).removesuffix(" %")
    high = metric.shown(score.high, 1).removesuffix(" %")
    return f"{low} to {high}"


def _score_tile(result: AutoResult, metric: Metric) -> TileText:
    """Return the score of what predicts: the ensemble, or the best single model."""
    part = "val" if result.test is None else "test"
    score = result.test or result.best.validation
    predictor = result.best.name
    if result.ensemble is not None and len(result.ensemble.members) > 1:
        predictor = f"Ensemble of {len(result.ensemble.members)} models"
        score = result.ensemble_test or result.ensemble.validation
    nodes = "validation" if part == "val" else "test"
    constant = result.majority.get(f"{part}_{metric.name}")
    beside = "" if constant is None else f"constant: {metric.shown(constant, 1)}"
    return TileText(
        label=metric.title[0].upper() + metric.title[1:],
        value=metric.shown(score.value, 1),
        beside=beside,
        text=f"{predictor} on {score.nodes:,} {nodes} nodes. 95 % interval: "
        f"{shown_limits(score, metric)}.",
    )


def _gain_tile(label: str, comparison: Comparison | None, metric: Metric) -> TileText:
    """Return what the edges or the features add, corrected for choosing the best model."""
    if comparison is None:
        text = f"No two models were trained that differ in whether they use the {label.lower()}."
        return TileText(label, "not compared", "", text)
    value, low, high = gain(comparison, metric)
    unit = " points" if metric.greater_is_better else ""
    sign = "+" if value > 0 else ""
    limits = f"{shown_difference(low, metric)} to {shown_difference(high, metric)}"
    return TileText(
        label=label,
        value=f"{sign}{shown_difference(value, metric)}{unit}",
        beside=f"95 %: {limits}",
        text=f"Gain of {comparison.first} over {comparison.second} on validation nodes, with its "
        "95 % interval.",
    )


def _test_sentences(result: AutoResult, metric: Metric) -> list[str]:
    if result.test is None:
        return ["No test nodes are labelled, so the score on unseen nodes is unknown."]
    constant = result.majority.get(f"test_{metric.name}")
    beside = ""
    if constant is not None:
        beside = f"; a constant prediction scores {metric.shown(constant, 1)}"
    sentences = [
        f"On {result.test.nodes:,} test nodes, which were not used in the search, this model "
        f"scores {shown_score(result.test, metric)}{beside} ({metric.title})."
    ]
    if result.ensemble is None or result.ensemble_test is None:
        return sentences
    members = len(result.ensemble.members)
    if len(result.leaderboard) == 1:
        sentences.append(
            "Only one configuration was trained, so no ensemble was possible: allow more time or "
            "runs for one."
        )
    elif members == 1:
        sentences.append(
            "No ensemble was better on the validation nodes, so predictions use this model alone."
        )
    else:
        sentences.append(
            f"An ensemble of {members} models scores {shown_score(result.ensemble_test, metric)} "
            "on the same nodes. `nfgnn predict` uses it unless --single is given."
        )
    return sentences


def _model_sentence(config: RunConfig) -> str:
    changed = changed_settings(config)
    if not changed:
        return f"{config.model} with its default settings"
    listed = ", ".join(f"{key}={value}" for key, value in changed.items())
    return f"{config.model} with {listed}"


def _cost_sentence(result: AutoResult, models: str) -> str:
    limit = ""
    if result.time_limit is not None:
        limit = f" (limit {duration(result.time_limit)})"
    runs = "1 run" if result.runs == 1 else f"{result.runs:,} runs"
    text = (
        f"{models} in {runs}, {duration(result.seconds)}{limit} on {result.device}; the first "
        f"model was trained after {duration(result.seconds_to_first)}."
    )
    if result.best.splits > 1:
        text += (
            " Because there are few validation nodes, the best models are compared by their mean "
            f"score over {result.best.splits} splits into training and validation nodes. Models "
            "with fewer splits are less certain, so they may rank below models with a lower score."
        )
    elif result.validation_splits > 1:
        text += (
            " There are few validation nodes, and there was no time to compare models on several "
            "splits. A longer --time makes the choice more reliable."
        )
    return text[0].upper() + text[1:]
