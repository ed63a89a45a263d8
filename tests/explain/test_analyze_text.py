"""Interpretation of generated graphs whose pattern is known."""

import re
from typing import Any

import pytest
import torch
from helpers.small_graphs import own_graph, two_way
from torch_geometric.data import Data

from nfgnn.data import load_dataset, mixed_graph
from nfgnn.explain import analyze_graph
from nfgnn.explain.analyze_text import describe_analysis


@pytest.mark.parametrize(
    ("options", "kind", "room"),
    [
        ({"homophily": (0.8, 0.0)}, "mixed", "clear"),
        ({"homophily": (0.45, 0.45)}, "weakly homophilic", "little"),
        ({"homophily": (0.9, 0.9)}, "homophilic", "little"),
        ({"homophily": (0.0, 0.0)}, "heterophilic", "little"),
        ({"shares": (0, 0, 1)}, "indifferent", "little"),
    ],
)
def test_kind_and_room(options: dict[str, Any], kind: str, room: str) -> None:
    analysis = analyze_graph(mixed_graph(1500, seed=3, **options), models=False)
    words = analysis["words"]
    assert (words["kind"], words["room"]) == (kind, room)
    assert f"{room} room" in words["summary"]
    assert ("Room does not guarantee a gain" in words["advice"]) == (room != "little")
    assert ("compromise" in words["findings"]["Sides"]) == (room != "little")
    compared = any("PolyGNN" in entry["command"] for entry in analysis["commands"])
    assert compared == (room != "little")


def spread_words(below: float, rho: float) -> dict[str, Any]:
    """Return the words about a graph with these sides and this correlation."""
    analysis = analyze_graph(own_graph([0, 0, 1, 1, 0, 0, 1, -1]), models=False)
    analysis["spread"] |= {
        "above_chance": 1 - below,
        "below_chance": below,
        "correlation": rho,
        "correlation_error": 0.01,
    }
    return describe_analysis(analysis)


@pytest.mark.parametrize("below", [0.0, 0.02, 0.125, 0.402, 0.5, 0.999, 1.0])
def test_sides_add_up_to_100_percent(below: float) -> None:
    words = spread_words(below, rho=0.3)
    for text in (words["findings"]["Sides"], words["tiles"][1]["text"]):
        shares = re.findall(r"(?i)(more than |less than )?(\d+) %", text)
        assert len(shares) == 2
        assert sum(int(share) for _, share in shares) == 100


@pytest.mark.parametrize(
    ("below", "rho", "claim"),
    [
        (0.02, 0.4, "on the same side"),
        (0.97, 0.4, "on the same side"),
        (0.4, 0.01, "no evidence of different patterns"),
        (0.1, 0.4, "a single filter may have to compromise"),
        (0.4, 0.4, "a single filter has to compromise"),
    ],
)
def test_conflict_is_claimed_for_large_sides_only(below: float, rho: float, claim: str) -> None:
    assert claim in spread_words(below, rho)["findings"]["Sides"]


@pytest.mark.parametrize(
    ("features", "edges", "sentence"),
    [
        ([0.9, 0.8, 0.85], [0.6, 0.6, 0.7], "Features alone predict better than edges alone."),
        ([0.6, 0.6, 0.7], [0.9, 0.8, 0.85], "Edges alone predict better than features alone."),
        ([0.9, 0.7, 0.8], [0.7, 0.9, 0.8], "about equally well"),
        (
            [0.5, 0.4, 0.6],
            [0.9, 0.8, 0.85],
            "Edges alone clearly beat a constant prediction; features alone do not.",
        ),
        ([0.5, 0.4, 0.6], [0.5, 0.6, 0.4], "Neither features nor edges alone predict better"),
        (None, [0.9, 0.8, 0.85], "no features of its own"),
    ],
)
def test_worth_of_features_and_edges(
    features: list[float] | None, edges: list[float], sentence: str
) -> None:
    analysis = analyze_graph(own_graph([0, 0, 1, 1, 0, 0, 1, -1]), models=False)
    assert analysis["words"]["tiles"][2]["text"] == "The models were skipped (--no-models)."
    analysis["baselines"] = {
        "metric": "accuracy",
        "nodes": 5,
        "folds": 3,
        "constant": 0.5,
        "features": features,
        "edges": edges,
    }
    words = describe_analysis(analysis)
    assert sentence in words["tiles"][2]["text"]
    assert sentence in words["findings"]["Features and edges"]
    assert "a sample of 5 of the 7 labelled nodes" in words["tiles"][2]["text"]


def test_graph_without_labelled_neighbours() -> None:
    data = Data(edge_index=two_way((0, 1)), x=torch.eye(4), y=torch.tensor([0, -1, 1, 1]))
    data.name = "sparse"
    words = analyze_graph(load_dataset(data))["words"]
    assert words["summary"].startswith("No edge connects two labelled nodes")
    assert words["tiles"] == []
    assert words["reasons"] == [f"{key}: {text}" for key, text in words["findings"].items()]
