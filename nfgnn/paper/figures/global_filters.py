"""Filters that all nodes share (rank 1) on homophilic and heterophilic graphs (Figure 8)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nfgnn.analysis import frequency_response, homophily
from nfgnn.explain import COLOURS, canvas, headline, panels, title
from nfgnn.paper.figures.shared import rounded
from nfgnn.paper.trained_models import TrainedModels, shared_coefficients

DATASETS = ("cora", "citeseer", "texas", "chameleon", "squirrel", "actor")
_LINE_STYLES = ("-", "--", "-.", ":")


def rows(models: TrainedModels, datasets: Sequence[str]) -> dict[str, Any]:
    """Return the response of Γ of every run, scaled to a largest value of 1.

    The model may scale and flip it without changing its output.
    """
    graphs = []
    for name in datasets:
        data = models.graph(name)
        fits = models.fits(name, "NFGNN")
        frequencies, curves = frequency_response(
            shared_coefficients(fits), fits[0].basis, points=101
        )
        largest = curves.gather(1, curves.abs().argmax(1, keepdim=True))
        graphs.append(
            {
                "name": name,
                "node_homophily": homophily(data.edge_index, data.y)["node"],
                "curves": rounded(curves / largest),
            }
        )
    return {
        "graphs": graphs,
        "frequencies": [round(frequency, 5) for frequency in frequencies.tolist()],
        "runs": models.runs,
    }


def draw(rows: dict[str, Any]) -> Any:
    """Draw the mean over the runs, and the range of all runs as a band."""
    homophilic = [graph for graph in rows["graphs"] if graph["node_homophily"] > 0.5]
    heterophilic = [graph for graph in rows["graphs"] if graph["node_homophily"] <= 0.5]
    with canvas() as plt:
        figure, axes = panels(plt, 2, width=4.0, height=3.0, sharey=True)
        _draw_panel(axes[0, 0], homophilic, rows["frequencies"])
        _draw_panel(axes[0, 1], heterophilic, rows["frequencies"])
        axes[0, 0].set(title="homophilic graphs", ylabel="response / largest value")
        axes[0, 1].set(title="heterophilic graphs")
        finding = (
            "The shared filter peaks at low frequencies on "
            f"{_count_low(homophilic, rows['frequencies'])} homophilic and "
            f"{_count_low(heterophilic, rows['frequencies'])} heterophilic graphs"
        )
        headline(figure, finding)
    return figure


def _count_low(graphs: list[dict[str, Any]], frequencies: list[float]) -> str:
    """Return how many of the graphs have a mean response with its peak at λ < ½."""
    low = 0
    for graph in graphs:
        peak = np.abs(np.mean(graph["curves"], 0)).argmax()
        low += frequencies[peak] < 0.5
    return f"{low} of {len(graphs)}"


def _draw_panel(ax: Any, graphs: list[dict[str, Any]], frequencies: list[float]) -> None:
    for i, graph in enumerate(graphs):
        curves = np.array(graph["curves"])
        colour = COLOURS[i % len(COLOURS)]
        style = _LINE_STYLES[i % len(_LINE_STYLES)]
        label = title(graph["name"])
        ax.plot(frequencies, curves.mean(0), color=colour, ls=style, label=label)
        lowest = curves.min(0)
        highest = curves.max(0)
        ax.fill_between(frequencies, lowest, highest, color=colour, alpha=0.12, lw=0)
    ax.set(xlabel="frequency λ", xlim=(0, 2))
    ax.set_xticks((0, 0.5, 1, 1.5, 2))
    if graphs:
        ax.legend(loc="best")
