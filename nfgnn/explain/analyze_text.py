"""Plain-language interpretation of the measures of a graph.

``room`` answers the question behind this library: do the labels show local patterns that a single
filter for all nodes cannot fit? That takes two things. First, nodes must be on both sides of
chance: some with at least as many neighbours of their own class as chance gives, others with fewer.
Second, the variation of h must exceed chance, since chance alone gives nodes with few neighbours
any value of h. The correlation ρ of :mod:`nfgnn.analysis.homophily_spread` measures the second.
Room does not guarantee a gain: a model must infer from features and edges which pattern applies to
a node.
"""

import math
import statistics
from typing import Any

from nfgnn.training import Metric, find_metric

CLEAR = 0.2
SOME = 0.05
"""Thresholds of ``room``, for the share of the smaller side and for ρ minus two errors."""
_LEAST_DIFFERENCE = 0.01  # of two scores that a sentence calls different

_KINDS = {
    "mixed": "The graph mixes homophilic and heterophilic neighbourhoods",
    "homophilic": "The graph is homophilic",
    "weakly homophilic": "The graph is weakly homophilic",
    "indifferent": "Neighbours share a class about as often as by chance",
    "heterophilic": "The graph is heterophilic",
}
_ROOMS = {
    "clear": "clear room for node-specific filters",
    "some": "some room for node-specific filters",
    "little": "little room for node-specific filters",
}
_ROOM_IS_NO_GAIN = (
    "Room does not guarantee a gain. It is computed from the labels, whereas a model must infer "
    "from features and edges which pattern applies to a node."
)
_ADVICE = {
    "clear": _ROOM_IS_NO_GAIN,
    "some": _ROOM_IS_NO_GAIN,
    "little": "The labels give no reason to expect that one filter per node beats a single filter "
    "for all nodes.",
}


def describe_analysis(analysis: dict[str, Any]) -> dict[str, Any]:
    """Return the single words ``kind`` and ``room``, and the explanation in sentences.

    - ``summary``: the verdict in one sentence.
    - ``tiles``: the three main results, each with ``label``, ``value``, ``chance`` and ``text``.
    - ``findings``: all results in sentences, by their label; ``reasons``: the same as a list.
    - ``advice``: how to read the verdict.
    """
    structure = _structure_findings(analysis)
    if "homophily" not in analysis or analysis["homophily"]["edge"] is None:
        return _describe_without_labels(analysis, structure)
    room = _room(analysis["spread"])
    kind = _kind(room, analysis["homophily"]["adjusted"])
    findings = {**_label_findings(analysis, room), **structure}
    return {
        "kind": kind,
        "room": room,
        "summary": f"{_KINDS[kind]}, with {_ROOMS[room]}.",
        "tiles": [_homophily_tile(analysis), _variation_tile(analysis), _baseline_tile(analysis)],
        "findings": findings,
        "reasons": _as_list(findings),
        "advice": _ADVICE[room],
    }


def _describe_without_labels(analysis: dict[str, Any], structure: dict[str, str]) -> dict[str, Any]:
    reason = "The labelled nodes have fewer than two classes"
    if "homophily" in analysis:
        reason = "No edge connects two labelled nodes"
    return {
        "kind": "unknown",
        "room": "unknown",
        "summary": f"{reason}, so homophily is undefined.",
        "tiles": [],
        "findings": structure,
        "reasons": _as_list(structure),
        "advice": "To measure homophily, label more nodes (column 'label', empty where unknown).",
    }


def _as_list(findings: dict[str, str]) -> list[str]:
    return [f"{label}: {text}" for label, text in findings.items()]


def _kind(room: str, adjusted: float | None) -> str:
    if room == "clear":
        return "mixed"
    # With C balanced classes adjusted homophily ranges from -1 / (C - 1) to 1.
    if adjusted is None or -0.1 < adjusted < 0.2:
        return "indifferent"
    if adjusted < 0:
        return "heterophilic"
    return "homophilic" if adjusted >= 0.5 else "weakly homophilic"


def _room(spread: dict[str, float | None]) -> str:
    # Room needs both sides and variation beyond chance, so the weakest of the three decides.
    evidence = min(
        _smaller_side(spread), _lower_bound(spread["correlation"], spread["correlation_error"])
    )
    if evidence >= CLEAR:
        return "clear"
    return "some" if evidence >= SOME else "little"


def _smaller_side(spread: dict[str, float | None]) -> float:
    return min(spread["above_chance"] or 0.0, spread["below_chance"] or 0.0)


def _lower_bound(rho: float | None, error: float | None) -> float:
    if rho is None or error is None:
        return 0.0
    return rho - 2 * error


def _homophily_tile(analysis: dict[str, Any]) -> dict[str, str]:
    measures = analysis["homophily"]
    return {
        "label": "Homophily",
        "value": _percent(measures["edge"]),
        "chance": f"chance: {_percent(analysis['homophily_by_chance'])}",
        "text": "Share of the edges that connect nodes of the same class. Adjusted homophily is "
        f"{_number(measures['adjusted'])}, where 0 is chance and 1 is perfect agreement.",
    }


def _variation_tile(analysis: dict[str, Any]) -> dict[str, str]:
    spread = analysis["spread"]
    above, below = _sides(spread["below_chance"])
    return {
        "label": "Local variation",
        "value": _shown_rho(spread),
        "chance": "chance: 0",
        "text": f"{_variation_verdict(spread, 'Local patterns')}. {above} of the nodes have at "
        "least as many neighbours of their own class as chance predicts, and "
        f"{below} have fewer.",
    }


def _baseline_tile(analysis: dict[str, Any]) -> dict[str, str]:
    label = "Features and edges"
    baselines = analysis.get("baselines")
    if baselines is None:
        text = "Too few nodes are labelled to cross-validate a model."
        if "baselines" not in analysis:
            text = "The models were skipped (--no-models)."
        return {"label": label, "value": "not measured", "chance": "", "text": text}
    metric = find_metric(baselines["metric"])
    values = []
    for name in ("features", "edges"):
        if baselines[name] is not None:
            values.append(metric.shown(statistics.mean(baselines[name]), 0))
    return {
        "label": label,
        "value": " vs. ".join(values) or "not measured",
        "chance": f"constant: {metric.shown(baselines['constant'], 0)}",
        "text": f"{_comparison(baselines, metric)} {metric.title[0].upper()}{metric.title[1:]}, "
        f"cross-validated on {_cross_validated(analysis)}.",
    }


def _cross_validated(analysis: dict[str, Any]) -> str:
    """Return which nodes were cross-validated."""
    labelled = analysis["nodes"] - analysis["unlabelled"]
    nodes = analysis["baselines"]["nodes"]
    if nodes < labelled:
        return f"a sample of {nodes:,} of the {labelled:,} labelled nodes"
    return f"all {labelled:,} labelled nodes"


def _comparison(baselines: dict[str, Any], metric: Metric) -> str:
    """Return what features and edges are worth, as far as the folds support it."""
    features = baselines["features"]
    edges = baselines["edges"]
    constant = baselines["constant"]
    sign = 1 if metric.greater_is_better else -1
    informative = {}
    for name, scores in (("features", features), ("edges", edges)):
        if scores is not None:
            informative[name] = _is_above(scores, [constant] * len(scores), sign)
    if not informative:
        return "The graph has neither features nor edges."
    if not any(informative.values()):
        if len(informative) == 2:
            return "Neither features nor edges alone predict better than a constant."
        return f"The {min(informative)} alone predict no better than a constant."
    if len(informative) == 1:
        other = "features" if features is None else "edges"
        return f"The graph has no {other} of its own to compare with."
    if not all(informative.values()):
        names = sorted(informative, key=lambda name: not informative[name])
        return (
            f"{names[0].capitalize()} alone clearly beat a constant prediction; {names[1]} alone "
            "do not."
        )
    if _is_above(edges, features, sign):
        return "Edges alone predict better than features alone."
    if _is_above(features, edges, sign):
        return "Features alone predict better than edges alone."
    return "Features alone and edges alone predict about equally well."


def _is_above(scores: list[float], others: list[float], sign: int) -> bool:
    """Whether the mean difference over the folds exceeds two standard errors."""
    differences = [sign * (score - other) for score, other in zip(scores, others)]
    mean = statistics.mean(differences)
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return mean >= max(_LEAST_DIFFERENCE, 2 * error)


def _label_findings(analysis: dict[str, Any], room: str) -> dict[str, str]:
    measures = analysis["homophily"]
    hops = analysis["two_hops"]
    histograms = analysis["figures"]["homophily_histograms"]["graphs"][0]
    undefined = histograms["h"]["1 hop"]["undefined"]
    findings = {
        "Homophily": f"On average, {_percent(measures['node'])} of a node's neighbours share its "
        f"class. {_percent(measures['edge'])} of the edges connect nodes of the same class; random "
        f"edges with the same degrees would give {_percent(analysis['homophily_by_chance'])}.",
        "Label informativeness": "Knowing the class of one neighbour removes "
        f"{_percent(analysis['label_informativeness'])} of the uncertainty about a node's class.",
        "Sides": _sides_sentence(analysis["spread"], room),
        "Local variation": _variation_sentence(analysis["spread"]),
        "Features and edges": _baseline_sentence(analysis),
        "Entropy": _entropy_sentence(histograms["S"], analysis["classes"]),
        "Two hops": f"{_percent(hops['same_class'])} of the nodes at distance two share a node's "
        "class. If neighbours were independent given the class of the node between them, "
        f"{_percent(hops['expected'])} would (Proposition 1).",
    }
    if undefined:
        noun = "node" if undefined == 1 else "nodes"
        findings["Excluded"] = (
            f"Local homophily is undefined for {undefined:,} {noun} without a label or without a "
            "labelled neighbour."
        )
    if not findings["Features and edges"]:
        del findings["Features and edges"]
    return findings


def _sides_sentence(spread: dict[str, Any], room: str) -> str:
    above, below = _sides(spread["below_chance"])
    shares = (
        f"{above} of the nodes have at least as many neighbours of their own class as chance "
        f"predicts, and {below} have fewer."
    )
    if room != "little":
        must = "has to" if room == "clear" else "may have to"
        return (
            f"{shares} Averaging over neighbours suits the first group, differences from "
            f"neighbours suit the second, and a single filter {must} compromise."
        )
    if _smaller_side(spread) < SOME:
        return f"{shares} Nearly all nodes are on the same side, so a single filter suits them."
    return (
        f"{shares} This is no evidence of different patterns, because local homophily hardly "
        "varies more than chance explains."
    )


def _variation_sentence(spread: dict[str, Any]) -> str:
    deviation = (
        "The standard deviation of local homophily over the nodes is "
        f"{_number(spread['deviation'])}; one pattern per class would give "
        f"{_number(spread['by_chance'])} by chance."
    )
    if spread["correlation"] is None:
        return f"{deviation} The correlation beyond chance cannot be estimated on this graph."
    verdict = _variation_verdict(spread, "local patterns")
    return (
        f"{deviation} The correlation between two neighbours of a node, given its class, is "
        f"{_shown_rho(spread)} (0 by chance): {verdict}."
    )


def _variation_verdict(spread: dict[str, Any], subject: str) -> str:
    if spread["correlation"] is None:
        return f"{subject} cannot be compared on this graph"
    bound = _lower_bound(spread["correlation"], spread["correlation_error"])
    if bound >= CLEAR:
        return f"{subject} clearly differ between nodes"
    if bound >= SOME:
        return f"{subject} differ between nodes, but not strongly"
    return f"{subject} hardly vary more than chance explains"


def _baseline_sentence(analysis: dict[str, Any]) -> str:
    """Return the scores of the cross-validated models; empty without any."""
    baselines = analysis.get("baselines")
    if baselines is None:
        return ""
    metric = find_metric(baselines["metric"])
    models = {
        "features": "An MLP on the features",
        "edges": "LINK, a logistic regression on the edges,",
    }
    parts = []
    for name, model in models.items():
        if baselines[name] is not None:
            score = metric.shown(statistics.mean(baselines[name]), 1)
            parts.append(f"{model} scores {score}; ")
    constant = metric.shown(baselines["constant"], 1)
    return (
        f"{''.join(parts)}a constant prediction scores {constant} ({metric.title}, "
        f"{baselines['folds']}-fold cross-validation on {_cross_validated(analysis)}). "
        f"{_comparison(baselines, metric)}"
    )


def _entropy_sentence(entropy: dict[str, Any], classes: int) -> str:
    one_hop = entropy["1 hop"]["mean"]
    two_hops = entropy["within 2 hops"]["mean"]
    if one_hop is None or two_hops is None:
        return "Label entropy is undefined, because no node has labelled neighbours."
    largest = math.log(max(2, classes))
    return (
        f"The classes among a node's neighbours have a mean entropy of {_number(one_hop)} nats, "
        f"{_percent(one_hop / largest)} of the maximum. Within two hops, it is "
        f"{_percent(two_hops / largest)} of the maximum."
    )


def _structure_findings(analysis: dict[str, Any]) -> dict[str, str]:
    degree = analysis["degree"]
    components = analysis["components"]
    isolated = analysis["isolated"]
    parts = "The graph is connected."
    if components > 1:
        parts = (
            f"The graph has {components:,} connected components; the largest contains "
            f"{_percent(analysis['largest_component'])} of the nodes."
        )
    noun = "node is" if isolated == 1 else "nodes are"
    alone = f" {isolated:,} {noun} isolated." if isolated else ""
    findings = {
        "Structure": f"The mean degree is {degree['mean']:.1f}, the median {degree['median']:g} "
        f"and the maximum {degree['largest']:,}. {parts}{alone}"
    }
    if analysis["bipartite"]:
        findings["Bipartite"] = "Frequencies come in pairs λ and 2 - λ."
    frequency = analysis["feature_frequency"]
    if frequency is not None:
        if frequency < 0.95:
            verdict = "adjacent nodes have similar features"
        elif frequency > 1.05:
            verdict = "adjacent nodes have dissimilar features"
        else:
            verdict = "the features of adjacent nodes are nearly unrelated"
        findings["Feature frequency"] = (
            f"The mean frequency of the features is {frequency:.2f} on a scale from 0 to 2: "
            f"{verdict}."
        )
    return findings


def _sides(below: float | None) -> tuple[str, str]:
    """Return the shares of nodes at or above chance and below it, which add up to 100 %."""
    if below is None:
        return "An undefined share", "an undefined share"
    if 0 < below < 0.005:
        return "More than 99 %", "less than 1 %"
    if 0.995 < below < 1:
        return "Less than 1 %", "more than 99 %"
    percent = round(100 * below)
    return f"{100 - percent} %", f"{percent} %"


def _shown_rho(spread: dict[str, Any]) -> str:
    if spread["correlation"] is None:
        return "undefined"
    return f"ρ = {_number(spread['correlation'])} ± {2 * spread['correlation_error']:.2f}"


def _number(value: float | None) -> str:
    if value is None:
        return "undefined"
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _percent(value: float | None) -> str:
    if value is None:
        return "an undefined share"
    if 0 < value < 0.005:
        return "less than 1 %"
    if 0.995 <= value < 1:
        return "more than 99 %"
    return f"{100 * value:.0f} %"
