"""Do similar neighbourhoods get similar filters? Coefficient distance by Jaccard distance (the paper's Figure 7)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nfgnn.analysis import JACCARD_INTERVALS, distance_by_jaccard
from nfgnn.explain import canvas, panels, title
from nfgnn.paper.lab import Lab

DATASETS = ("cora", "texas", "chameleon", "actor")
_TICKS = ("0–.2", ".2–.4", ".4–.6", ".6–.8", ".8–1", "= 1")
GROUPS = ("same label", "different labels")


def rows(lab: Lab, datasets: Sequence[str]) -> dict[str, Any]:
    """Mean distance per interval and group, averaged over the runs."""
    return {"graphs": [_row(lab, name) for name in datasets], "runs": lab.runs}


def _row(lab: Lab, name: str) -> dict[str, Any]:
    data = lab.graph(name)
    fits = [fit.coefficients for fit in lab.fits(name, "NFGNN") if fit.coefficients is not None]
    found = [distance_by_jaccard(data.edge_index, data.y, psi) for psi in fits]
    mean = np.mean([run.mean for run in found], 0)
    between = (
        np.std([run.mean for run in found], 0, ddof=1) / np.sqrt(len(found))
        if len(found) > 1
        else 0 * mean
    )
    error = np.sqrt(between**2 + np.mean([run.error**2 for run in found], 0) / len(found))
    size = float(np.mean([psi.norm(dim=1).mean() for psi in fits]))
    return {
        "name": name,
        "intervals": list(JACCARD_INTERVALS),
        "mean": {group: _defined(values) for group, values in zip(GROUPS, mean)},
        "error": {group: _defined(values) for group, values in zip(GROUPS, error)},
        "pairs": {group: values.tolist() for group, values in zip(GROUPS, found[0].pairs)},
        "anchors": found[0].anchors,
        "mean_norm": size,
    }


def _defined(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 7) for value in values]


def draw(rows: dict[str, Any]) -> Any:
    """Bars with standard errors, relative to the mean length of a node's coefficients."""
    with canvas() as plt:
        figure, axes = panels(plt, len(rows["graphs"]), width=2.8, height=2.6)
        for ax, graph in zip(axes[0], rows["graphs"]):
            for i, group in enumerate(GROUPS):
                mean, error = (
                    100
                    * np.array([np.nan if v is None else v for v in graph[key][group]])
                    / graph["mean_norm"]
                    for key in ("mean", "error")
                )
                place = np.arange(len(mean)) + (i - 0.5) * 0.4
                ax.bar(
                    place, mean, 0.4, label=group, hatch=("", "//")[i], edgecolor="white", lw=0.5
                )
                ax.errorbar(place, mean, error, fmt="none", ecolor="#555555", lw=0.8)
            ax.set_xticks(range(len(_TICKS)), _TICKS, fontsize=7)
            ax.set(title=title(graph["name"]), xlabel="Jaccard distance of neighbourhoods")
        axes[0, 0].set_ylabel("distance of coefficients\n(% of their mean length)")
        axes[0, 0].legend(fontsize=7)
    return figure
