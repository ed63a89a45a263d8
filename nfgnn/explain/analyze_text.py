"""What the numbers of a graph mean, in sentences.

``room`` is about the one question that this library is for: do the labels show local patterns that one filter for all
nodes cannot serve? Two things must come together. There must be nodes on both sides (more neighbours of the own class
than of all others; fewer than chance), and the variety must be more than chance, which alone gives nodes with few
neighbours any h. The second is measured by ρ of :mod:`nfgnn.analysis.spread`. Room is not gain: a model must find out
from features and links on which side a node is.
"""

import math
from typing import Any

CLEAR, SOME = 0.2, 0.05
"""From these values on, of the smaller side and of ρ less two standard errors, there is clear room, or some."""


def words(card: dict[str, Any]) -> dict[str, Any]:
    """``kind`` and ``room`` as single words, ``reasons`` and ``advice`` as sentences."""
    if "homophily" not in card or card["homophily"]["edge"] is None:
        return _without_labels(card)
    kind, room = _kind(card), _room(card["spread"])
    return {
        "kind": kind,
        "room": room,
        "summary": f"{_KINDS[kind]} {_ROOMS[room]}",
        "reasons": [*_label_sentences(card), *_structure_sentences(card)],
        "advice": _ADVICE,
    }


def _without_labels(card: dict[str, Any]) -> dict[str, Any]:
    why = "linked nodes with labels" if "homophily" in card else "labels of two classes"
    return {
        "kind": "unknown",
        "room": "unknown",
        "summary": f"There are no {why}, so nothing can be said about homophily, and nothing about the room for a "
        "filter per node. What follows needs no labels.",
        "reasons": _structure_sentences(card),
        "advice": "Give some nodes a label (a column 'label', empty where unknown) and run this again.",
    }


def _kind(card: dict[str, Any]) -> str:
    adjusted = card["homophily"]["adjusted"]
    if _room(card["spread"]) == "clear":
        return "mixed"
    if adjusted is None or -0.1 < adjusted < 0.2:
        return "indifferent"
    return (
        "heterophilic" if adjusted < 0 else "homophilic" if adjusted >= 0.5 else "weakly homophilic"
    )


def _room(spread: dict[str, float | None]) -> str:
    rho, error = spread["correlation"], spread["correlation_error"]
    surely = 0.0 if rho is None or error is None else rho - 2 * error
    least = min(spread["above_half"] or 0.0, spread["below_chance"] or 0.0, surely)
    return "clear" if least >= CLEAR else "some" if least >= SOME else "little"


_KINDS = {
    "mixed": "A graph of mixed local patterns: homophilic and heterophilic neighbourhoods stand side by side.",
    "homophilic": "A homophilic graph: links mostly join nodes of one class.",
    "weakly homophilic": "A weakly homophilic graph: links join nodes of one class more often than chance would.",
    "indifferent": "A graph whose links say little about classes: nodes of one class are linked about as often as "
    "chance would link them.",
    "heterophilic": "A heterophilic graph: links avoid the own class.",
}
_ROOMS = {
    "clear": "The labels show clear room for filters per node.",
    "some": "The labels show some room for filters per node.",
    "little": "The labels show little room for filters per node beyond what one filter can do.",
}
_ADVICE = (
    "Room is not gain: labels decide it here, and a model has to tell from features and links on which side a node is. "
    "Compare on this graph: nfgnn train DATASET --model NFGNN (a filter per node) and --model PolyGNN (one filter), "
    "with the same --seed and --runs; look at the difference against its confidence interval."
)


def _label_sentences(card: dict[str, Any]) -> list[str]:
    spread, measures, hops = card["spread"], card["homophily"], card["two_hops"]
    local = card["figures"]["homophily_histograms"]["graphs"][0]
    undefined = local["h"]["1 hop"]["undefined"]
    sentences = [
        f"Level: a node shares its class with {_percent(measures['node'])} of its neighbours on average (edge "
        f"homophily {_number(measures['edge'])}); adjusted for the sizes of the classes homophily is "
        f"{_number(measures['adjusted'])}, where 0 is chance and 1 is perfect agreement.",
        f"Information: the class of one neighbour takes away {_percent(card['label_informativeness'])} of the "
        "uncertainty about a node's own (label informativeness).",
        f"Sides: {_percent(spread['above_half'])} of the nodes have more neighbours of their own class than of all "
        f"others, where averaging over neighbours helps; {_percent(spread['below_chance'])} have fewer than chance "
        "would give, where differences from neighbours help. One filter serves one side at the cost of the other.",
        _chance_sentence(spread),
        _entropy_sentence(local, card["classes"]),
        f"Two hops: at distance two {_percent(hops['same_class'])} of the nodes are of the same class; if neighbours "
        f"were independent given a node's class it would be {_percent(hops['expected'])} (Proposition 1).",
    ]
    if undefined:
        sentences.append(
            f"Nodes without a labelled neighbour or without a label, so without h: {undefined:,}, left out."
        )
    return sentences


def _chance_sentence(spread: dict[str, Any]) -> str:
    rho, error = spread["correlation"], spread["correlation_error"]
    start = (
        f"Spread: h of the nodes has a standard deviation of {_number(spread['deviation'])}; small numbers of "
        f"neighbours alone would give {_number(spread['by_chance'])}. "
    )
    if rho is None:
        return (
            start + "Whether there is more than chance cannot be said: no node has two neighbours."
        )
    verdict = (
        "neighbours of a node agree in agreeing, so local patterns are real"
        if rho - 2 * error >= CLEAR
        else "local patterns are there, but weak"
        if rho - 2 * error >= SOME
        else "hardly more than chance; as far as can be told, nodes of a class share one pattern"
    )
    return f"{start}Beyond chance, two neighbours of a node correlate with ρ = {rho:.2f} ± {2 * error:.2f}: {verdict}."


def _entropy_sentence(local: dict[str, Any], classes: int) -> str:
    one, two = (local["S"][hops]["mean"] for hops in ("1 hop", "within 2 hops"))
    if one is None or two is None:
        return "Randomness: no node has labelled neighbours, so there is no label entropy."
    most = math.log(max(2, classes))
    return (
        f"Randomness: the classes around a node have an entropy of {_number(one)} on average, {_percent(one / most)} "
        f"of the most possible, and {_percent(two / most)} within two hops."
    )


def _structure_sentences(card: dict[str, Any]) -> list[str]:
    degree = card["degree"]
    plural = "part" if card["components"] == 1 else "parts"
    sentences = [
        f"Links: {degree['mean']:.1f} per node on average, {degree['median']:g} in the median, "
        f"{degree['largest']:,} at most; {card['components']:,} connected {plural}, the largest with "
        f"{_percent(card['largest_component'])} of the nodes; nodes without links, about which only their own "
        f"features can tell: {card['isolated']:,}."
    ]
    if card["bipartite"]:
        sentences.append("The graph is bipartite: frequencies come in pairs λ and 2 - λ.")
    frequency = card["feature_frequency"]
    if frequency is not None:
        verdict = (
            "linked nodes resemble each other in their features"
            if frequency < 0.95
            else "linked nodes differ in their features"
            if frequency > 1.05
            else "links say next to nothing about features"
        )
        sentences.append(
            f"Features: their mean frequency is {frequency:.2f} on a scale from 0 to 2: {verdict}."
        )
    return sentences


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}".replace("-0.00", "0.00")


def _percent(value: float | None) -> str:
    return "an undefined share" if value is None else f"{100 * value:.0f} %"
