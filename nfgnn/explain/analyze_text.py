"""Plain-language interpretation of the measures of a graph.

``room`` answers the question behind this library: do the labels show local patterns that a single
filter for all nodes cannot fit? That takes two things. First, the graph must have nodes of both
kinds: nodes whose neighbours mostly share their class, and nodes with fewer such neighbours than
chance would give. Second, the variation of h must exceed chance, since chance alone gives nodes
with few neighbours any value of h. The correlation ρ of :mod:`nfgnn.analysis.homophily_spread`
measures the second. Room is not a guaranteed gain: a model must infer from features and edges
which pattern applies to a node.
"""

import math
from typing import Any

CLEAR = 0.2
SOME = 0.05
"""Thresholds of ``room``, for the share of the smaller group and for ρ minus two errors."""

_KINDS = {
    "mixed": "The graph has mixed local patterns: some neighbourhoods are homophilic and others "
    "are heterophilic.",
    "homophilic": "The graph is homophilic: most edges connect nodes of the same class.",
    "weakly homophilic": "The graph is weakly homophilic: edges connect nodes of the same class "
    "more often than chance.",
    "indifferent": "Edges say little about classes: they connect nodes of the same class about as "
    "often as chance.",
    "heterophilic": "The graph is heterophilic: edges tend to connect nodes of different classes.",
}
_ROOMS = {
    "clear": "The labels show clear room for node-specific filters.",
    "some": "The labels show some room for node-specific filters.",
    "little": "The labels show little room for node-specific filters beyond a single filter.",
}
_ADVICE = (
    "Room is not a guaranteed gain: it is computed from the labels, whereas a model must infer "
    "from features and edges which pattern applies to a node. To compare both on this graph, run "
    "nfgnn train DATASET --model NFGNN (one filter per node) and --model PolyGNN (one filter for "
    "all nodes) with the same --seed and --runs, and judge the difference against its confidence "
    "interval."
)


def describe_analysis(analysis: dict[str, Any]) -> dict[str, Any]:
    """Return the single words ``kind`` and ``room``, and the explanation in sentences."""
    if "homophily" not in analysis or analysis["homophily"]["edge"] is None:
        return _describe_without_labels(analysis)
    room = _room(analysis["spread"])
    kind = _kind(room, analysis["homophily"]["adjusted"])
    return {
        "kind": kind,
        "room": room,
        "summary": f"{_KINDS[kind]} {_ROOMS[room]}",
        "reasons": [*_label_sentences(analysis), *_structure_sentences(analysis)],
        "advice": _ADVICE,
    }


def _describe_without_labels(analysis: dict[str, Any]) -> dict[str, Any]:
    missing = "labels of at least two classes"
    if "homophily" in analysis:
        missing = "edges between labelled nodes"
    return {
        "kind": "unknown",
        "room": "unknown",
        "summary": f"The graph has no {missing}, so homophily and the room for node-specific "
        "filters are undefined. The following measures do not need labels.",
        "reasons": _structure_sentences(analysis),
        "advice": "Label some nodes (column 'label', empty where unknown) and run the analysis "
        "again.",
    }


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
    # Room needs both groups and variation beyond chance, so the weakest of the three decides.
    evidence = min(
        spread["above_half"] or 0.0,
        spread["below_chance"] or 0.0,
        _lower_bound(spread["correlation"], spread["correlation_error"]),
    )
    if evidence >= CLEAR:
        return "clear"
    return "some" if evidence >= SOME else "little"


def _lower_bound(rho: float | None, error: float | None) -> float:
    if rho is None or error is None:
        return 0.0
    return rho - 2 * error


def _label_sentences(analysis: dict[str, Any]) -> list[str]:
    measures = analysis["homophily"]
    spread = analysis["spread"]
    hops = analysis["two_hops"]
    histograms = analysis["figures"]["homophily_histograms"]["graphs"][0]
    undefined = histograms["h"]["1 hop"]["undefined"]
    sentences = [
        f"Level: on average, {_percent(measures['node'])} of a node's neighbours share its class "
        f"(edge homophily {_number(measures['edge'])}). Adjusted for class sizes, homophily is "
        f"{_number(measures['adjusted'])}, where 0 is chance and 1 is perfect agreement.",
        "Information: the class of one neighbour removes "
        f"{_percent(analysis['label_informativeness'])} of the uncertainty about the class of a "
        "node (label informativeness).",
        f"Groups: {_percent(spread['above_half'])} of the nodes share their class with more than "
        "half of their neighbours, so averaging over neighbours helps them; "
        f"{_percent(spread['below_chance'])} have fewer neighbours of their class than chance "
        "would give, so differences from neighbours help them. A single filter favours one group "
        "at the expense of the other.",
        _spread_sentence(spread),
        _entropy_sentence(histograms["S"], analysis["classes"]),
        f"Two hops: {_percent(hops['same_class'])} of the nodes at distance two share the class of "
        f"a node; {_percent(hops['expected'])} would if neighbours were independent given its "
        "class (Proposition 1).",
    ]
    if undefined:
        sentences.append(
            f"Nodes without a label or without labelled neighbours, for which h is undefined: "
            f"{undefined:,} (excluded)."
        )
    return sentences


def _spread_sentence(spread: dict[str, Any]) -> str:
    rho = spread["correlation"]
    error = spread["correlation_error"]
    deviation = (
        f"Spread: the standard deviation of h over the nodes is {_number(spread['deviation'])}; "
        f"small neighbourhoods alone would give {_number(spread['by_chance'])}."
    )
    if rho is None:
        return f"{deviation} The part beyond chance cannot be estimated on this graph."
    bound = _lower_bound(rho, error)
    if bound >= CLEAR:
        verdict = "homophily is correlated within neighbourhoods beyond what chance explains"
    elif bound >= SOME:
        verdict = "local patterns exist, but they are weak"
    else:
        verdict = "hardly more than chance, so the nodes of a class may well share one pattern"
    return (
        f"{deviation} Beyond chance, two neighbours of a node correlate with "
        f"ρ = {rho:.2f} ± {2 * error:.2f}: {verdict}."
    )


def _entropy_sentence(entropy: dict[str, Any], classes: int) -> str:
    one_hop = entropy["1 hop"]["mean"]
    two_hops = entropy["within 2 hops"]["mean"]
    if one_hop is None or two_hops is None:
        return "Randomness: the label entropy is undefined, since no node has labelled neighbours."
    largest = math.log(max(2, classes))
    return (
        f"Randomness: the classes around a node have an average entropy of {_number(one_hop)}, "
        f"which is {_percent(one_hop / largest)} of the maximum, and "
        f"{_percent(two_hops / largest)} of it within two hops."
    )


def _structure_sentences(analysis: dict[str, Any]) -> list[str]:
    degree = analysis["degree"]
    components = analysis["components"]
    noun = "component" if components == 1 else "components"
    sentences = [
        f"Structure: the mean degree is {degree['mean']:.1f}, the median {degree['median']:g}, the "
        f"maximum {degree['largest']:,}. The graph has {components:,} connected {noun}, the "
        f"largest with {_percent(analysis['largest_component'])} of the nodes. Isolated nodes: "
        f"{analysis['isolated']:,}."
    ]
    if analysis["bipartite"]:
        sentences.append("The graph is bipartite, so frequencies come in pairs λ and 2 - λ.")
    frequency = analysis["feature_frequency"]
    if frequency is not None:
        if frequency < 0.95:
            verdict = "adjacent nodes have similar features"
        elif frequency > 1.05:
            verdict = "adjacent nodes have dissimilar features"
        else:
            verdict = "the features of adjacent nodes are nearly unrelated"
        sentences.append(
            f"Features: their mean frequency is {frequency:.2f} on a scale from 0 to 2: {verdict}."
        )
    return sentences


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}".replace("-0.00", "0.00")


def _percent(value: float | None) -> str:
    return "an undefined share" if value is None else f"{100 * value:.0f} %"
