"""Distance of coefficients by Jaccard distance of neighbourhoods (Figure 7).

It shows whether nodes with similar neighbourhoods get similar filters.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nfgnn.analysis import JACCARD_INTERVALS, distance_by_jaccard
from nfgnn.explain import FEW_NODES, canvas, headline, panels, title
from nfgnn.paper.figures.shared import draw_bars
from nfgnn.paper.trained_models import TrainedModels

DATASETS = ("cora", "texas", "chameleon", "actor")
GROUPS = ("same label", "different labels")
_TICKS = ("0–.2", ".2–.4", ".4–.6", ".6–.8", ".8–1", "= 1")
_HATCHES = ("", "//")
_WIDTH = 0.4  # of a bar
_CLEAR_GROWTH = 1.5


def rows(models: TrainedModels, datasets: Sequence[str]) -> dict[str, Any]:
    """Return the mean distance per interval and group, averaged over the runs."""
    return {"graphs": [_row(models, name) for name in datasets], "runs": models.runs}


def _row(models: TrainedModels, name: str) -> dict[str, Any]:
    data = models.graph(name)
    fits = models.fits(name, "NFGNN")
    coefficients = [fit.coefficients for fit in fits if fit.coefficients is not None]
    found = [distance_by_jaccard(data.edge_index, data.y, psi) for psi in coefficients]
    means = [run.mean for run in found]
    mean = np.mean(means, 0)
    between_runs = 0 * mean
    if len(found) > 1:
        between_runs = np.std(means, 0, ddof=1) / np.sqrt(len(found))
    within_runs = np.mean([run.error**2 for run in found], 0) / len(found)
    error = np.sqrt(between_runs**2 + within_runs)
    norms = [psi.norm(dim=1).mean() for psi in coefficients]
    return {
        "name": name,
        "intervals": list(JACCARD_INTERVALS),
        "mean": {group: _defined(values) for group, values in zip(GROUPS, mean)},
        "error": {group: _defined(values) for group, values in zip(GROUPS, error)},
        "pairs": {group: values.tolist() for group, values in zip(GROUPS, found[0].pairs)},
        "anchors": found[0].anchors,
        "mean_norm": float(np.mean(norms)),
    }


def _defined(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 7) for value in values]


def draw(rows: dict[str, Any]) -> Any:
    """Draw bars with standard errors, relative to the mean length of a node's coefficients."""
    with canvas() as plt:
        figure, axes = panels(plt, len(rows["graphs"]), width=2.8, height=2.6)
        for ax, graph in zip(axes[0], rows["graphs"]):
            for i, group in enumerate(GROUPS):
                mean = _percent(graph, "mean", group)
                error = _percent(graph, "error", group)
                x = np.arange(len(mean)) + (i - 0.5) * _WIDTH
                few = np.array(graph["pairs"][group]) < FEW_NODES
                draw_bars(ax, x, mean, error, _WIDTH, _HATCHES[i], group, few)
            ax.set_xticks(range(len(_TICKS)), _TICKS, fontsize=7)
            ax.set_title(f"{title(graph['name'])}: × {_growth(graph):.1f}")
            ax.set_xlabel("Jaccard distance of neighbourhoods")
        axes[0, 0].set_ylabel("distance of coefficients\n(% of their mean length)")
        axes[0, 0].legend(loc="best")
        growing = sum(_growth(graph) >= _CLEAR_GROWTH for graph in rows["graphs"])
        finding = (
            f"On {growing} of {len(rows['graphs'])} graphs, filters of nodes with dissimilar "
            "neighbourhoods are at least "
            f"{_CLEAR_GROWTH} times as far apart as those of similar ones"
        )
        headline(figure, finding)
    return figure


def _growth(graph: dict[str, Any]) -> float:
    """Return the ratio of the mean distances in the last interval below 1 and in the first."""
    means = np.array([graph["mean"][group] for group in GROUPS], dtype=float)
    pairs = np.array([graph["pairs"][group] for group in GROUPS], dtype=float)
    weighted = np.nansum(means * pairs, 0) / np.maximum(pairs.sum(0), 1)
    return float(weighted[-2] / weighted[0]) if weighted[0] else float("nan")


def _percent(graph: dict[str, Any], key: str, group: str) -> np.ndarray:
    values = np.array(graph[key][group], dtype=float)  # None becomes NaN
    return 100 * values / float(graph["mean_norm"])
