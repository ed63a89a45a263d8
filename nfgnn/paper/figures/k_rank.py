"""Accuracy of NFGNN over the degree K and the rank d (Figure 10)."""

from collections.abc import Sequence
from typing import Any

from nfgnn.explain import COLOURS, canvas, panels, title
from nfgnn.paper.trained_models import TrainedModels
from nfgnn.training import summarise

DATASETS = ("cora", "texas")
DEGREES = (1, 3, 5, 10)
RANKS = (1, 3, 5)
_MARKERS = ("o", "s", "^")


def rows(models: TrainedModels, datasets: Sequence[str]) -> dict[str, Any]:
    """Return the test accuracy of every run for every K and rank."""
    graphs = []
    for name in datasets:
        cells = []
        for rank in RANKS:
            for K in DEGREES:
                fits = models.fits(name, "NFGNN", K=K, rank=rank)
                accuracies = [fit.accuracy for fit in fits]
                cells.append({"K": K, "rank": rank, **summarise(accuracies)})
        graphs.append({"name": name, "cells": cells})
    return {"graphs": graphs, "runs": models.runs}


def draw(rows: dict[str, Any]) -> Any:
    """Draw one line per rank; bars are 95 % confidence intervals of the mean over the runs."""
    with canvas() as plt:
        figure, axes = panels(plt, len(rows["graphs"]), width=3.2, height=2.7)
        for ax, graph in zip(axes[0], rows["graphs"]):
            _draw_lines(ax, graph["cells"])
            ax.set(xlabel="degree K", title=f"{title(graph['name'])}, {rows['runs']} runs")
        axes[0, 0].set_ylabel("test accuracy (%)")
        axes[0, 0].legend(fontsize=7, loc="best")
    return figure


def _draw_lines(ax: Any, cells: list[dict[str, Any]]) -> None:
    degrees = sorted({cell["K"] for cell in cells})
    for i, rank in enumerate(sorted({cell["rank"] for cell in cells})):
        own = [cell for cell in cells if cell["rank"] == rank]
        # The lines are shifted against each other, so that their bars do not overlap.
        x = [degrees.index(cell["K"]) + 0.08 * (i - 1) for cell in own]
        means = [100 * cell["mean"] for cell in own]
        half = [100 * (cell["ci95"] or 0) for cell in own]
        ax.errorbar(
            x,
            means,
            half,
            label=f"rank {rank}",
            color=COLOURS[i],
            marker=_MARKERS[i % len(_MARKERS)],
            ms=4,
            lw=1,
            elinewidth=0.8,
            capsize=2,
        )
    ax.set_ylim(top=min(ax.get_ylim()[1], 100.5))
    ax.set_xticks(range(len(degrees)), [str(K) for K in degrees])
