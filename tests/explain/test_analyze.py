"""`nfgnn analyze`: numbers that can be checked, words that follow from them, and a page that stands alone."""

import json
import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import homophily as pyg_homophily

from nfgnn.cli import main
from nfgnn.data import load_dataset, mixed_graph
from nfgnn.errors import UserError
from nfgnn.explain import analyze_graph, write_analysis
from nfgnn.explain.analyze_page import analysis_page
from nfgnn.explain.figures import DRAW
from nfgnn.paper.figures import find_figure
from nfgnn.paper.lab import Lab


def two_way(*links: tuple[int, int]) -> torch.Tensor:
    return torch.tensor([*links, *((b, a) for a, b in links)]).T


def own_graph(y: list[int] | None, name: str = "own") -> Data:
    """A path 0 - 1 - 2 - 3, a triangle 4 5 6, and node 7 alone."""
    links = two_way((0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (4, 6))
    data = Data(
        edge_index=links,
        x=torch.eye(8),
        num_nodes=8,
        y=None if y is None else torch.tensor(y),
        name=name,
    )
    return load_dataset(data, need_labels=False)


def test_numbers_by_hand() -> None:
    card = analyze_graph(own_graph([0, 0, 1, 1, 0, 0, 1, -1]))
    assert (
        card["nodes"],
        card["edges"],
        card["isolated"],
        card["components"],
        card["unlabelled"],
    ) == (8, 6, 1, 3, 1)
    assert card["degree"] == {"mean": 1.5, "median": 2.0, "largest": 2}
    assert card["largest_component"] == 4 / 8
    assert not card["bipartite"]
    assert card["homophily"]["node"] == pytest.approx((1 + 0.5 + 0.5 + 1 + 0.5 + 0.5 + 0) / 7)
    assert card["spread"]["above_half"] == pytest.approx(2 / 7)
    local = card["figures"]["homophily_histograms"]["graphs"][0]
    assert local["h"]["1 hop"]["undefined"] == 1
    assert local["h"]["within 2 hops"]["mean"] == pytest.approx(
        (0.5 + 1 / 3 + 1 / 3 + 0.5 + 0.5 + 0.5 + 0) / 7
    )
    # Exactly two hops: 0-2, 1-3 differ; the triangle has none.
    assert card["two_hops"]["same_class"] == 0
    spectrum = card["figures"]["spectrum"]["graphs"][0]
    # λ: path 0, 1/2, 3/2, 2; triangle 0, 3/2, 3/2; the lonely node 1.
    occupied = {round(e, 2): s for e, s in zip(spectrum["edges"], spectrum["shares"]) if s}
    assert occupied == {0.0: 0.25, 0.48: 0.125, 1.0: 0.125, 1.48: 0.375, 1.96: 0.125} or occupied == {
        0.0: 0.25, 0.52: 0.125, 1.0: 0.125, 1.48: 0.375, 1.96: 0.125
    }  # fmt: skip


def test_karate_against_networkx_and_pyg() -> None:
    data = load_dataset("karate")
    card, graph = analyze_graph(data), nx.karate_club_graph()
    assert card["homophily"]["edge"] == pytest.approx(
        pyg_homophily(data.edge_index, data.y, method="edge"), abs=1e-6
    )
    degrees = [d for _, d in graph.degree()]
    assert card["degree"]["largest"] == max(degrees)
    row = card["figures"]["degrees"]["graphs"][0]
    for low, high, share in zip(row["limits"], row["limits"][1:], row["shares"]):
        assert share == pytest.approx(sum(low <= d < high for d in degrees) / 34, abs=1e-6)


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
def test_words_know_graphs_whose_truth_is_known(
    options: dict[str, Any], kind: str, room: str
) -> None:
    said = analyze_graph(mixed_graph(1500, seed=3, **options))["words"]
    assert (said["kind"], said["room"]) == (kind, room)
    assert "Room is not a guaranteed gain" in said["advice"]


@pytest.mark.parametrize("y", [None, [-1] * 8, [0] * 8])
def test_without_two_classes_there_is_still_something_to_say(
    y: list[int] | None, tmp_path: Path
) -> None:
    card = analyze_graph(own_graph(y))
    assert "homophily" not in card
    assert set(card["figures"]) == {"degrees", "spectrum"}
    assert card["words"]["room"] == "unknown"
    assert any("connected components" in sentence for sentence in card["words"]["reasons"])
    if y is None:
        assert (tmp_path / "x" / "spectrum.pdf") in write_analysis(card, tmp_path / "x")


@pytest.mark.parametrize("links", [[], [(0, 1)]])
def test_graphs_with_hardly_any_links(links: list[tuple[int, int]]) -> None:
    edge_index = two_way(*links) if links else torch.zeros(2, 0, dtype=torch.long)
    data = load_dataset(
        Data(edge_index=edge_index, x=torch.eye(3), y=torch.tensor([0, 1, 1]), name="few")
    )
    card = analyze_graph(data)
    json.dumps(card, allow_nan=False)
    for name, rows in card["figures"].items():
        assert DRAW[name](rows)
    assert analysis_page(card, {})


class Tags(HTMLParser):
    """Collects tags and attributes, and checks that what is opened is closed."""

    void = frozenset({"meta", "br", "path", "use", "rect", "stop", "image", "circle", "line"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.void:
            assert self.open.pop() == tag


def test_the_page_stands_alone_and_trusts_no_name(tmp_path: Path) -> None:
    card = analyze_graph(own_graph([0, 0, 1, 1, 0, 0, 1, -1], name="<script>&$x^$図"))
    write_analysis(card, tmp_path)
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert "script" not in {tag for tag, _ in tags.seen}
    assert "&lt;script&gt;&amp;$x^$図" in text
    for tag, attributes in tags.seen:
        for key in ("src", "href", "xlink:href"):
            assert (attributes.get(key) or "#").startswith("#"), tag
    assert not re.search(r"url\((?!#)|@import", text)
    assert (
        "meta",
        {"name": "viewport", "content": "width=device-width, initial-scale=1"},
    ) in tags.seen
    assert "prefers-color-scheme: dark" in text
    assert "currentColor" in text  # the ink follows the scheme
    assert sum(tag == "svg" for tag, _ in tags.seen) == 3
    ids = [attributes["id"] for _, attributes in tags.seen if "id" in attributes]
    assert all(i.startswith(("m", "p", "h")) for i in ids)  # only what is referred to


def nfgnn(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["nfgnn", *arguments])
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert nfgnn(monkeypatch, "analyze", "karate", "--json") == 0
    card = json.loads(capsys.readouterr().out)
    assert all(Path(file).is_file() for file in card["files"])
    assert card["files"][0] == "analysis/karate/index.html"
    assert json.loads(Path("analysis/karate/analysis.json").read_text()).items() <= card.items()
    names = {Path(file).name for file in card["files"]}
    figures = {
        f"{n}.{e}"
        for n in ("degrees", "homophily_histograms", "spectrum")
        for e in ("pdf", "png", "svg")
    }
    assert (
        names
        == {path.name for path in Path("analysis/karate").iterdir()}
        == figures | {"index.html", "analysis.json"}
    )
    assert nfgnn(monkeypatch, "analyze", "karate", "--out", "here") == 0
    assert all(
        Path(f"here/{name}").read_bytes() == Path(f"analysis/karate/{name}").read_bytes()
        for name in names
    )
    said = capsys.readouterr().out
    assert "The graph is homophilic" in said
    assert "here/index.html" in said
    Path("taken").touch()
    assert nfgnn(monkeypatch, "analyze", "karate", "--out", "taken") == 2
    assert "cannot create taken" in capsys.readouterr().err
    assert nfgnn(monkeypatch, "analyze", "nowhere") == 2


def test_own_files_with_other_column_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "nodes.csv").write_text("id,kind,f\na,x,1\nb,x,2\nc,y,3\nd,,4\n")
    (folder / "edges.csv").write_text("source,target\na,b\nb,c\nc,d\n")
    monkeypatch.chdir(tmp_path)
    assert nfgnn(monkeypatch, "analyze", "shop/", "--column", "label=kind", "--json") == 0
    card = json.loads(capsys.readouterr().out)
    assert (card["name"], card["class_names"], card["unlabelled"]) == ("shop", ["x", "y"], 1)
    assert card["homophily"]["node"] == pytest.approx((1 + 0.5 + 0) / 3)


def test_the_four_graphs_look_as_the_paper_says(data_root: Path) -> None:
    found = find_figure("homophily_histograms").rows(
        Lab(data_root), ["cora", "citeseer", "texas", "actor"]
    )
    rows = {row["name"]: row for row in found["graphs"]}
    for name, row in rows.items():
        one, two = (row["S"][hops] for hops in ("1 hop", "within 2 hops"))
        assert two["mean"] > one["mean"]  # shifted to the right
        low = row["h"]["1 hop"]["shares"][0], row["h"]["1 hop"]["shares"][-1]
        assert min(low) > (0.05 if name != "texas" else 0.01)  # both extremes occur everywhere
    relative = {name: row["S"]["1 hop"]["mean"] / row["top"] for name, row in rows.items()}
    assert max(relative["cora"], relative["citeseer"]) < min(relative["texas"], relative["actor"])
    assert math.isclose(rows["texas"]["h"]["within 2 hops"]["mean"], 0.496, abs_tol=0.001)


def test_a_store_has_no_links() -> None:
    with pytest.raises(UserError, match="store of precomputed terms"):
        analyze_graph(Data(y=torch.tensor([0, 1]), num_nodes=2, name="store"))


def test_not_a_folder_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="--out"):
        write_analysis(analyze_graph(own_graph(None)), tmp_path / "file" / "below")
