"""Analyses of graphs with known properties."""

import json
from pathlib import Path

import networkx as nx
import pytest
import torch
from helpers.small_graphs import own_graph, two_way
from torch_geometric.data import Data
from torch_geometric.utils import homophily as pyg_homophily

from nfgnn.data import load_dataset
from nfgnn.errors import UserError
from nfgnn.explain import analyze_graph, write_analysis
from nfgnn.explain.analyze_page import analysis_page
from nfgnn.explain.figures import DRAW


def test_numbers_by_hand() -> None:
    analysis = analyze_graph(own_graph([0, 0, 1, 1, 0, 0, 1, -1]))
    assert (
        analysis["nodes"],
        analysis["edges"],
        analysis["isolated"],
        analysis["components"],
        analysis["unlabelled"],
    ) == (8, 6, 1, 3, 1)
    assert analysis["degree"] == {"mean": 1.5, "median": 2.0, "largest": 2}
    assert analysis["largest_component"] == 4 / 8
    assert not analysis["bipartite"]
    assert analysis["homophily"]["node"] == pytest.approx((1 + 0.5 + 0.5 + 1 + 0.5 + 0.5 + 0) / 7)
    assert analysis["spread"]["above_half"] == pytest.approx(2 / 7)
    # 7 of the 12 ends of edges are in class 0, 5 in class 1.
    assert analysis["homophily_by_chance"] == pytest.approx((7**2 + 5**2) / 12**2)
    local = analysis["figures"]["homophily_histograms"]["graphs"][0]
    assert local["h"]["1 hop"]["undefined"] == 1
    assert local["h"]["within 2 hops"]["mean"] == pytest.approx(
        (0.5 + 1 / 3 + 1 / 3 + 0.5 + 0.5 + 0.5 + 0) / 7
    )
    # Exactly two hops: 0-2, 1-3 differ; the triangle has none.
    assert analysis["two_hops"]["same_class"] == 0
    spectrum = analysis["figures"]["spectrum"]["graphs"][0]
    # λ of the path: 0, 1/2, 3/2, 2; of the triangle: 0, 3/2, 3/2; of the isolated node: 1.
    occupied = {round(e, 2): s for e, s in zip(spectrum["edges"], spectrum["shares"]) if s}
    half = 0.48 if 0.48 in occupied else 0.52  # 1/2 may be rounded to either side of a limit
    assert occupied == {0.0: 0.25, half: 0.125, 1.0: 0.125, 1.48: 0.375, 1.96: 0.125}


def test_karate_against_networkx_and_pyg() -> None:
    data = load_dataset("karate")
    analysis, graph = analyze_graph(data), nx.karate_club_graph()
    assert analysis["homophily"]["edge"] == pytest.approx(
        pyg_homophily(data.edge_index, data.y, method="edge"), abs=1e-6
    )
    degrees = [d for _, d in graph.degree()]
    assert analysis["degree"]["largest"] == max(degrees)
    row = analysis["figures"]["degrees"]["graphs"][0]
    for low, high, share in zip(row["limits"], row["limits"][1:], row["shares"]):
        assert share == pytest.approx(sum(low <= d < high for d in degrees) / 34, abs=1e-6)


@pytest.mark.parametrize("y", [None, [-1] * 8, [0] * 8])
def test_without_two_classes(y: list[int] | None, tmp_path: Path) -> None:
    analysis = analyze_graph(own_graph(y))
    assert "homophily" not in analysis
    assert set(analysis["figures"]) == {"degrees", "spectrum"}
    assert analysis["words"]["room"] == "unknown"
    assert any("connected components" in sentence for sentence in analysis["words"]["reasons"])
    if y is None:
        assert (tmp_path / "x" / "spectrum.pdf") in write_analysis(analysis, tmp_path / "x")


@pytest.mark.parametrize("edges", [[], [(0, 1)]])
def test_graphs_with_hardly_any_edges(edges: list[tuple[int, int]]) -> None:
    edge_index = two_way(*edges) if edges else torch.zeros(2, 0, dtype=torch.long)
    data = load_dataset(
        Data(edge_index=edge_index, x=torch.eye(3), y=torch.tensor([0, 1, 1]), name="few")
    )
    analysis = analyze_graph(data)
    json.dumps(analysis, allow_nan=False)
    for name, rows in analysis["figures"].items():
        assert DRAW[name](rows)
    assert analysis_page(analysis, {})


def test_models_are_scored_by_the_metric_of_the_graph() -> None:
    graph = own_graph([0, 0, 1, 1, 0, 0, 1, -1])
    baselines = analyze_graph(graph)["baselines"]
    assert (baselines["metric"], baselines["nodes"], baselines["folds"]) == ("accuracy", 7, 3)
    assert baselines["constant"] == pytest.approx(4 / 7)
    graph.metric = "roc_auc"
    ranked = analyze_graph(graph)["baselines"]
    assert (ranked["metric"], ranked["constant"]) == ("roc_auc", 0.5)
    assert "baselines" not in analyze_graph(graph, models=False)


def test_commands_name_the_graph() -> None:
    graph = own_graph([0, 0, 1, 1, 0, 0, 1, -1])
    source = ["my graph/", "--column", "label=kind"]
    commands = analyze_graph(graph, models=False, source=source)["commands"]
    assert commands[0]["command"] == "nfgnn auto 'my graph/' --column label=kind --time 5m"
    unlabelled = analyze_graph(own_graph(None), source=source)["commands"]
    expected = "nfgnn analyze 'my graph/' --column label=kind --overwrite"
    assert [entry["command"] for entry in unlabelled] == [expected]


def test_store_is_an_error() -> None:
    with pytest.raises(UserError, match="store of precomputed terms"):
        analyze_graph(Data(y=torch.tensor([0, 1]), num_nodes=2, name="store"))


def test_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="--out"):
        write_analysis(analyze_graph(own_graph(None)), tmp_path / "file" / "below")
