"""Figures of single graphs."""

import json
from pathlib import Path
from typing import Any

import pytest

from nfgnn.analysis import nested_class_counts
from nfgnn.data import load_dataset
from nfgnn.explain import analyze_graph, inline_svg
from nfgnn.explain.figures import DRAW, homophily_histograms


@pytest.mark.parametrize("name", DRAW)
def test_figure_is_drawn_from_json(name: str) -> None:
    rows = json.loads(
        json.dumps(analyze_graph(load_dataset("karate"), models=False)["figures"][name])
    )
    assert inline_svg(DRAW[name](rows), name).endswith("</svg>\n")


def test_histograms_show_what_the_paper_describes(data_root: Path) -> None:
    rows = {}
    for name in ("cora", "citeseer", "texas", "actor"):
        data = load_dataset(name, root=data_root)
        counts = nested_class_counts(data.edge_index, data.y, 2)
        rows[name] = homophily_histograms.row(name, counts, data.y)
    relative = {}
    for name, row in rows.items():
        one_hop = row["S"]["1 hop"]["mean"]
        assert row["S"]["within 2 hops"]["mean"] > one_hop  # shifted to the right
        shares = row["h"]["1 hop"]["shares"]
        # Both extremes occur in every graph.
        assert min(shares[0], shares[-1]) > (0.05 if name != "texas" else 0.01)
        relative[name] = one_hop / row["top"]
    assert max(relative["cora"], relative["citeseer"]) < min(relative["texas"], relative["actor"])
    assert rows["texas"]["h"]["within 2 hops"]["mean"] == pytest.approx(0.496, abs=0.001)


def _degree_row(shares: list[float], isolated: float = 0.0) -> dict[str, Any]:
    limits = [2**k for k in range(len(shares) + 1)]
    return {"name": "own", "limits": limits, "shares": shares, "isolated": isolated}


def test_titles_say_what_the_rows_show() -> None:
    def panel_title(name: str, row: dict[str, Any]) -> str:
        return str(DRAW[name]({"graphs": [row]}).axes[0].get_title(loc="left"))

    half = "Half of the nodes have fewer than {} neighbours"
    assert panel_title("degrees", _degree_row([0.6, 0.4])) == half.format(2)
    assert panel_title("degrees", _degree_row([0.1, 0.2, 0.4], isolated=0.3)) == half.format(4)
    assert panel_title("degrees", _degree_row([], isolated=1.0)).startswith("100 % of the nodes")
    spectrum = {
        "name": "own",
        "exact": True,
        "edges": [0.0, 0.5, 1.0, 1.5, 2.0],
        "shares": [0.2, 0.1, 0.6, 0.1],
        "error": [0.0] * 4,
    }
    assert panel_title("spectrum", spectrum) == "Most common frequencies: 60 % near λ = 1.2"


def test_the_headline_counts_graphs() -> None:
    graphs = [_degree_row([0.6, 0.4]), _degree_row([0.1, 0.2, 0.3, 0.4])]
    text = DRAW["degrees"]({"graphs": graphs}).texts[0].get_text()
    assert "fewer than 8 neighbours" in text
    assert "at least 2" in text
