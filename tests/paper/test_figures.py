"""The figures of the paper: rows are plain data, and drawing needs nothing else."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from nfgnn.analysis import local_homophily
from nfgnn.errors import UserError
from nfgnn.explain import FADED, inline_svg
from nfgnn.paper.figures import FIGURES, find_figure
from nfgnn.paper.figures.translation import radial_layout
from nfgnn.paper.trained_models import TrainedModels
from nfgnn.training import summarise

FOLDER = Path(__file__).parents[2] / "results" / "figures"


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


@pytest.mark.parametrize("name", FIGURES)
def test_committed_figures_have_room_for_everything(name: str) -> None:
    """Titles do not overlap or leave the figure, and error bars do not leave their axes."""
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    figure = FIGURES[name].draw(content["rows"])
    figure.draw_without_rendering()
    assert figure.texts, "a finding as the title"
    boxes = [text.get_window_extent() for text in figure.texts]
    for ax in figure.axes:
        title = ax._left_title
        if title.get_text():
            boxes.append(title.get_window_extent())
        low, high = ax.get_ylim()
        for container in ax.containers:
            if isinstance(container, ErrorbarContainer):
                for bars in container[2]:
                    ends = np.concatenate(bars.get_segments())[:, 1]
                    ends = ends[~np.isnan(ends)]
                    assert (ends >= low).all()
                    assert (ends <= high).all()
    for i, box in enumerate(boxes):
        assert box.x1 <= figure.bbox.x1
        assert not any(box.overlaps(other) for other in boxes[:i])


def _accuracies(*models: list[float]) -> dict[str, Any]:
    """Return the row of a graph with nine test nodes in the first interval and ten in another."""
    labels = ("GCN", "one filter", "filter per node")
    by_model = {}
    for label, values in zip(labels, models):
        summary = summarise(values)
        by_model[label] = {"all": summary, "intervals": [summary, summary, None, None, None]}
    return {"name": "own", "nodes": [9, 10, 0, 0, 0], "models": by_model}


def test_headline_of_accuracies_counts_clear_differences() -> None:
    better = [0.9, 0.91, 0.92]
    worse = [0.8, 0.81, 0.82]
    noisy = [0.7, 0.91, 1.0]
    graphs = [_accuracies(worse, noisy, better), _accuracies(worse, worse, better)]
    figure = FIGURES["homophily_accuracy"].draw({"graphs": graphs, "runs": 3})
    text = figure.texts[0].get_text().replace("\n", " ")
    assert text.startswith("A filter per node beats one filter on 1 of 2 graphs, and GCN on 2")
    bars = figure.axes[0].patches
    assert bars[0].get_alpha() == FADED  # nine nodes
    assert bars[1].get_alpha() == 1.0  # ten nodes


def test_headline_of_degree_and_rank_has_their_effects() -> None:
    cells = []
    for K, mean in ((1, 0.7), (3, 0.8)):
        for rank in (1, 3):
            accuracy = mean + 0.01 * rank
            cells.append({"K": K, "rank": rank, "mean": accuracy, "ci95": 0.3})
    rows = {"graphs": [{"name": "own", "cells": cells}], "runs": 10}
    text = FIGURES["k_rank"].draw(rows).texts[0].get_text().replace("\n", " ")
    assert text.endswith("moves the accuracy by up to 10.0 points, the rank by up to 2.0")


def test_committed_k_rank_has_the_ten_runs_of_the_table() -> None:
    rows = json.loads((FOLDER / "k_rank.json").read_text(encoding="utf-8"))["rows"]
    with (FOLDER.parent / "k-rank.csv").open(encoding="utf-8") as file:
        table = {(row["dataset"], row["model"]): row for row in csv.DictReader(file)}
    for graph in rows["graphs"]:
        for cell in graph["cells"]:
            row = table[graph["name"], f"K = {cell['K']}, d = {cell['rank']}"]
            assert len(cell["values"]) == int(row["runs"]) >= 10
            assert 100 * cell["mean"] == pytest.approx(float(row["mean"]), abs=1e-5)
