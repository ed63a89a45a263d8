"""Accuracy of NFGNN over the degree K and the rank d (the paper's Figure 10)."""

from collections.abc import Sequence
from typing import Any

from nfgnn.explain import COLOURS, canvas, panels, title
from nfgnn.paper.lab import Lab
from nfgnn.training.metrics import summarise

DATASETS = ("cora", "texas")
DEGREES = (1, 3, 5, 10)
RANKS = (1, 3, 5)
_MARKERS = ("o", "s", "^")


def rows(lab: Lab, datasets: Sequence[str]) -> dict[str, Any]:
    """Test accuracy of every run for every K and rank."""
    graphs = []
    for name in datasets:
        cells = [
            {
                "K": K,
                "rank": rank,
                **summarise([fit.accuracy for fit in lab.fits(name, "NFGNN", K=K, rank=rank)]),
            }
            for rank in RANKS
            for K in DEGREES
        ]
        graphs.append({"name": name, "cells": cells})
    return {"graphs": graphs, "runs": lab.runs}


def draw(rows: dict[str, Any]) -> Any:
    """One line per rank; bars are 95 % confidence intervals of the mean over the runs."""
    with canvas() as plt:
        figure, axes = panels(plt, len(rows["graphs"]), width=3.2, height=2.7)
        for ax, graph in zip(axes[0], rows["graphs"]):
            degrees = sorted({cell["K"] for cell in graph["cells"]})
            for i, rank in enumerate(sorted({cell["rank"] for cell in graph["cells"]})):
                cells = [cell for cell in graph["cells"] if cell["rank"] == rank]
                place = [degrees.index(cell["K"]) + 0.08 * (i - 1) for cell in cells]
                means = [100 * cell["mean"] for cell in cells]
                half = [100 * (cell["ci95"] or 0) for cell in cells]
                style = {
                    "color": COLOURS[i],
                    "marker": _MARKERS[i % 3],
                    "ms": 4,
                    "lw": 1,
                    "elinewidth": 0.8,
                }
                ax.errorbar(place, means, half, label=f"rank {rank}", capsize=2, **style)
            ax.set_ylim(top=min(ax.get_ylim()[1], 100.5))
            ax.set_xticks(range(len(degrees)), [str(K) for K in degrees])
            ax.set(xlabel="degree K", title=f"{title(graph['name'])}, {rows['runs']} runs")
        axes[0, 0].set_ylabel("test accuracy (%)")
        axes[0, 0].legend(fontsize=7)
    return figure
