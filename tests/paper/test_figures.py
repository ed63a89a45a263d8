"""The figures of the paper: rows are plain data, and drawing needs nothing else."""

import json

import numpy as np
import pytest

from nfgnn.analysis import local_homophily
from nfgnn.errors import UserError
from nfgnn.explain import inline_svg
from nfgnn.paper.figures import FIGURES, find_figure
from nfgnn.paper.figures.translation import radial_layout
from nfgnn.paper.trained_models import TrainedModels


def test_unknown_figures_are_refused() -> None:
    assert find_figure("k-rank") is FIGURES["k_rank"]
    with pytest.raises(UserError, match="k_rank"):
        find_figure("pie")


@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_drawn_from_its_rows_alone(name: str, models: TrainedModels) -> None:
    rows = FIGURES[name].rows(models, ["mixed"])
    text = json.dumps(rows, allow_nan=False)
    assert inline_svg(FIGURES[name].draw(json.loads(text)), name).endswith("</svg>\n")


def test_accuracies_add_up(models: TrainedModels) -> None:
    graph = FIGURES["homophily_accuracy"].rows(models, ["mixed"])["graphs"][0]
    data = models.graph("mixed")
    h = local_homophily(data.edge_index, data.y)
    fit = models.fits("mixed", "NFGNN")[0]
    nodes = fit.test_mask & ~h.isnan()
    correct: dict[int, list[bool]] = {i: [] for i in range(5)}
    for v in nodes.nonzero().flatten().tolist():
        correct[min(4, int(float(h[v]) * 5 + 1e-9))].append(bool(fit.correct[v]))
    for i, interval in enumerate(graph["models"]["filter per node"]["intervals"]):
        assert (interval is None) == (not correct[i]) or i
        if correct[i]:
            assert interval["values"][0] == pytest.approx(np.mean(correct[i]))


def test_global_filters_are_scaled_to_one(models: TrainedModels) -> None:
    for curve in FIGURES["global_filters"].rows(models, ["mixed"])["graphs"][0]["curves"]:
        assert max(curve) == pytest.approx(1)
        assert min(curve) >= -1


def test_translated_kernels_end_after_K_hops(models: TrainedModels) -> None:
    graph = FIGURES["translation"].rows(models, ["mixed"])["graphs"][0]
    positions = radial_layout(graph)
    for node, distance in zip(graph["nodes"], graph["distance"]):
        assert np.hypot(*positions[node]) == pytest.approx(distance)
    places = {(round(x, 6), round(y, 6)) for x, y in positions.values()}
    assert len(places) == len(positions)
    edges = models.graph("mixed").edge_index.T.tolist()
    inside = set(graph["nodes"])
    assert graph["links"] == [[a, b] for a, b in edges if a < b and {a, b} <= inside]
    for kernel in graph["kernels"].values():
        beyond = [v for v, d in zip(kernel["values"], graph["distance"]) if d > graph["K"]]
        assert not any(beyond)
