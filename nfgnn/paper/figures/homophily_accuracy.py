"""Test accuracy by local homophily: GCN, one global filter, a filter per node (the paper's Figure 6)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nfgnn.analysis import accuracy_by_homophily, local_homophily
from nfgnn.explain import canvas, panels, title
from nfgnn.paper.lab import Lab
from nfgnn.training.metrics import summarise

DATASETS = ("cora", "texas", "chameleon", "actor")
MODELS = {"GCN": "GCN", "one filter": "PolyGNN", "filter per node": "NFGNN"}
_HATCH = ("", "//", "..")


def rows(lab: Lab, datasets: Sequence[str]) -> dict[str, Any]:
    """Per graph and model: the accuracy of every run in five intervals of h, and how many test nodes are there."""
    return {"graphs": [_row(lab, name) for name in datasets], "runs": lab.runs}


def _row(lab: Lab, name: str) -> dict[str, Any]:
    data = lab.graph(name)
    h = local_homophily(data.edge_index, data.y)
    models: dict[str, Any] = {}
    for label, model in MODELS.items():
        fits = lab.fits(name, model)
        found = [
            accuracy_by_homophily(fit.correct[fit.test_mask], h[fit.test_mask]) for fit in fits
        ]
        accuracies = np.array([run.accuracy.tolist() for run in found])
        models[label] = {
            "all": summarise([fit.accuracy for fit in fits]),
            "intervals": [_summary(accuracies[:, i]) for i in range(accuracies.shape[1])],
        }
    return {
        "name": name,
        "models": models,
        "nodes": np.mean([run.nodes.tolist() for run in found], 0).tolist(),
    }


def _summary(values: np.ndarray) -> dict[str, Any] | None:
    """Over the runs that have a test node in the interval."""
    defined = [float(value) for value in values if not np.isnan(value)]
    return summarise(defined) if defined else None


def draw(rows: dict[str, Any]) -> Any:
    """Bars of the mean with 95 % confidence intervals over the runs; the number of test nodes below."""
    with canvas() as plt:
        figure, axes = panels(plt, len(rows["graphs"]), width=3.1, height=2.7, sharey=True)
        for ax, graph in zip(axes[0], rows["graphs"]):
            count = len(graph["nodes"])
            for i, (label, model) in enumerate(graph["models"].items()):
                found = [
                    interval or {"mean": np.nan, "ci95": None} for interval in model["intervals"]
                ]
                means = [100 * interval["mean"] for interval in found]
                half = [100 * (interval["ci95"] or 0) for interval in found]
                place = np.arange(count) + (i - 1) * 0.27
                ax.bar(place, means, 0.27, hatch=_HATCH[i], edgecolor="white", lw=0.5, label=label)
                ax.errorbar(place, means, half, fmt="none", ecolor="#555555", lw=0.8)
            limits = np.linspace(0, 1, count + 1)
            ticks = [
                f"{a:.1f}–{b:.1f}\n{n:.0f}" for a, b, n in zip(limits, limits[1:], graph["nodes"])
            ]
            ax.set_xticks(range(count), ticks, fontsize=7)
            ax.set(title=title(graph["name"]), xlabel="h of the node / test nodes", ylim=(0, 105))
        axes[0, 0].set_ylabel("accuracy (%)")
        axes[0, 0].legend(fontsize=7, loc="upper left")
    return figure
