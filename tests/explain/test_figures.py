"""Figures of single graphs."""

import json
from pathlib import Path

import pytest

from nfgnn.analysis import nested_class_counts
from nfgnn.data import load_dataset
from nfgnn.explain import analyze_graph, inline_svg
from nfgnn.explain.figures import DRAW, homophily_histograms


@pytest.mark.parametrize("name", DRAW)
def test_figure_is_drawn_from_json(name: str) -> None:
    rows = json.loads(json.dumps(analyze_graph(load_dataset("karate"))["figures"][name]))
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
