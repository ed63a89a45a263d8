"""Accuracy of NFGNN over the degree K and the rank d (Figure 10), from the table ``k-rank``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nfgnn.explain import COLOURS, canvas, clip_errors, headline, panels, title
from nfgnn.paper.trained_models import TrainedModels
from nfgnn.training import summarise

DATASETS = ("cora", "texas", "chameleon", "actor")
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
                accuracies = models.accuracies(name, "NFGNN", K=K, rank=rank)
                cells.append({"K": K, "rank": rank, **summarise(accuracies)})
        graphs.append({"name": name, "cells": cells})
    return {"graphs": graphs, "runs": models.runs}


def draw(rows: dict[str, Any]) -> Any:
    """Draw one line per rank; bars are 95 % confidence intervals of the mean over the runs."""
    with canvas() as plt:
        figure, axes = panels(plt, len(rows["graphs"]), width=2.8, height=2.7)
        for ax, graph in zip(axes[0], rows["graphs"]):
            _draw_lines(ax, graph["cells"])
            by_degree = _effect(graph["cells"], "K")
            by_rank = _effect(graph["cells"], "rank")
            ax.set_title(f"{title(graph['name'])}: K {by_degree:.1f}, rank {by_rank:.1f}")
            ax.set_xlabel("degree K")
        axes[0, 0].set_ylabel(f"test accuracy (%), {rows['runs']} runs")
        axes[0, 0].legend(loc="best")
        headline(figure, _finding(rows["graphs"]))
    return figure


def _effect(cells: list[dict[str, Any]], setting: str) -> float:
    """Return how far a setting moves the accuracy, in points, averaged over the other setting."""
    means = []
    for value in {cell[setting] for cell in cells}:
        means.append(np.mean([cell["mean"] for cell in cells if cell[setting] == value]))
    return 100 * float(max(means) - min(means))


def _finding(graphs: list[dict[str, Any]]) -> str:
    by_degree = max(_effect(graph["cells"], "K") for graph in graphs)
    by_rank = max(_effect(graph["cells"], "rank") for graph in graphs)
    return (
        f"The degree K moves the accuracy by up to {by_degree:.1f} points, "
        f"the rank by up to {by_rank:.1f}"
    )


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
            clip_errors(means, half),
            label=f"rank {rank}",
            color=COLOURS[i],
            marker=_MARKERS[i % len(_MARKERS)],
            ms=4,
            lw=1,
            elinewidth=0.8,
            capsize=2,
        )
    ax.set_xticks(range(len(degrees)), [str(K) for K in degrees])
