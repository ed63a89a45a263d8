"""Every figure of the registry: rows that are plain data with a meaning, ink from those rows alone, work done once."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nfgnn import NodeClassifier, split
from nfgnn.analysis import local_homophily
from nfgnn.data import mixed_graph
from nfgnn.errors import UserError
from nfgnn.explain import inline_svg
from nfgnn.paper.figures import figures, find_figure
from nfgnn.paper.figures.translation import _radial_layout
from nfgnn.paper.figures.write import write_figures
from nfgnn.paper.lab import Lab


class SmallLab(Lab):
    """One small graph with nodes in all subsets, whatever it is called."""

    def _load(self, dataset: str) -> Any:
        return mixed_graph(120, degree=5, num_features=6, seed=2)


@pytest.fixture(scope="module")
def lab() -> Lab:
    torch.set_num_threads(1)
    return SmallLab(runs=2, epochs=8)


def test_the_figures_of_the_paper_are_there() -> None:
    assert {
        "homophily_histograms", "spectrum", "translation", "homophily_accuracy", "jaccard_distance", "global_filters",
        "node_filters", "k_rank", "degrees",
    } <= set(figures())  # fmt: skip


@pytest.mark.parametrize("name", figures())
def test_rows_are_plain_and_all_that_the_ink_needs(name: str, lab: Lab) -> None:
    rows = find_figure(name).rows(lab, ["mixed"])
    text = json.dumps(rows, allow_nan=False)
    assert inline_svg(find_figure(name).draw(json.loads(text)), name).endswith("</svg>\n")


def test_accuracies_add_up(lab: Lab) -> None:
    graph = find_figure("homophily_accuracy").rows(lab, ["mixed"])["graphs"][0]
    data = lab.graph("mixed")
    h = local_homophily(data.edge_index, data.y)
    fit = lab.fits("mixed", "NFGNN")[0]
    nodes = fit.test_mask & ~h.isnan()
    right = {i: [] for i in range(5)}
    for v in nodes.nonzero().flatten().tolist():
        right[min(4, int(float(h[v]) * 5 + 1e-9))].append(bool(fit.correct[v]))
    for i, interval in enumerate(graph["models"]["filter per node"]["intervals"]):
        assert (interval is None) == (not right[i]) or i
        if right[i]:
            assert interval["values"][0] == pytest.approx(np.mean(right[i]))


def test_a_fit_is_what_the_classifier_gives(lab: Lab) -> None:
    data = split(lab.graph("mixed"), "full", 1001)
    classifier = NodeClassifier("NFGNN", preset="paper", seed=1001, epochs=8, rank=3).fit(data)
    fit = lab.fits("mixed", "NFGNN", rank=3)[1]
    assert fit.accuracy == classifier.score(data)
    assert torch.equal(fit.coefficients, classifier.coefficients(data))
    found = find_figure("node_filters").rows(lab, ["mixed"])["graphs"][0]
    first = lab.fits("mixed", "NFGNN", rank=3)[0].seed
    data = split(lab.graph("mixed"), "full", first)
    classifier = NodeClassifier("NFGNN", preset="paper", seed=first, epochs=8, rank=3).fit(data)
    for subset in found["subsets"].values():
        if subset["nodes"]:
            curves = classifier.response(data, subset["nodes"], points=101)[1]
            assert np.allclose(subset["curves"], curves.numpy(), atol=1e-4)


def test_global_filters_are_scaled_to_one(lab: Lab) -> None:
    for curve in find_figure("global_filters").rows(lab, ["mixed"])["graphs"][0]["curves"]:
        assert max(curve) == pytest.approx(1)
        assert min(curve) >= -1


def test_the_map_of_a_neighbourhood(lab: Lab) -> None:
    graph = find_figure("translation").rows(lab, ["mixed"])["graphs"][0]
    place = _radial_layout(graph)
    for node, distance in zip(graph["nodes"], graph["distance"]):
        assert np.hypot(*place[node]) == pytest.approx(distance)
    assert len({(round(x, 6), round(y, 6)) for x, y in place.values()}) == len(
        place
    )  # no two on one spot
    for kernel in graph["kernels"].values():
        assert all(
            value == 0 for value, d in zip(kernel["values"], graph["distance"]) if d > graph["K"]
        )


def test_work_is_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    work = lambda **options: write_figures(  # noqa: E731
        ["global-filters", "degrees"],
        ["mixed", "texas"],
        tmp_path,
        tmp_path / "out",
        1,
        said.append,
        **options,
    )
    monkeypatch.delenv("NFGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("nfgnn.paper.lab.Lab._load", SmallLab._load)
    written = work(epochs=4)
    assert [path.name for path in written] == ["global_filters.json", "degrees.json"]
    content = json.loads(written[0].read_text())
    assert list(content["inputs"]["graphs"]) == ["mixed"]  # Texas is not here
    before = {path.name: path.read_bytes() for path in (tmp_path / "out" / "figures").iterdir()}
    assert set(before) == {
        f"{n}.{e}" for n in ("global_filters", "degrees") for e in ("json", "png", "pdf", "svg")
    }
    fit = NodeClassifier.fit
    monkeypatch.setattr(NodeClassifier, "fit", lambda *a: pytest.fail("trained again"))
    work(epochs=4)
    (tmp_path / "out" / "figures" / "global_filters.png").unlink()
    work(epochs=4)  # drawn from the rows that are there
    assert before == {
        path.name: path.read_bytes() for path in (tmp_path / "out" / "figures").iterdir()
    }
    monkeypatch.setattr(NodeClassifier, "fit", fit)
    said.clear()
    work(epochs=5)
    assert any("seed 1000" in line for line in said)


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NFGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError, match="k_rank"):
        find_figure("pie")
    with pytest.raises(UserError, match="--root"):
        write_figures(["degrees"], ["texas"], tmp_path, tmp_path)


def test_committed_figures_are_whole_and_small() -> None:
    folder = Path(__file__).parents[2] / "results" / "figures"
    files = {path.name for path in folder.iterdir()}
    assert files == {
        f"{name}.{ending}" for name in figures() for ending in ("json", "png", "pdf", "svg")
    }
    assert sum(path.stat().st_size for path in folder.iterdir()) < 4_000_000
    for name in figures():
        content = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        assert content["inputs"]["first_seed"] >= 1000
        assert {graph["name"] for graph in content["rows"]["graphs"]} == set(
            content["inputs"]["graphs"]
        )
