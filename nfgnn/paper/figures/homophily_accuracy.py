"""Test accuracy by local homophily: GCN, one global filter, a filter per node (Figure 6)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nfgnn.analysis import accuracy_by_homophily, local_homophily
from nfgnn.explain import FEW_NODES, canvas, clip_errors, headline, panels, signed, title
from nfgnn.paper.figures.shared import draw_bars
from nfgnn.paper.statistics import Comparison, paired
from nfgnn.paper.trained_models import TrainedModels
from nfgnn.training import summarise

DATASETS = ("cora", "texas", "chameleon", "actor")
MODELS = {"GCN": "GCN", "one filter": "PolyGNN", "filter per node": "NFGNN"}
_HATCHES = ("", "//", "..")
_WIDTH = 0.27  # of a bar


def rows(models: TrainedModels, datasets: Sequence[str]) -> dict[str, Any]:
    """Return the accuracy of every run in five intervals of h, and the numbers of test nodes."""
    return {"graphs": [_row(models, name) for name in datasets], "runs": models.runs}


def _row(models: TrainedModels, name: str) -> dict[str, Any]:
    data = models.graph(name)
    h = local_homophily(data.edge_index, data.y)
    by_model: dict[str, Any] = {}
    for label, model in MODELS.items():
        fits = models.fits(name, model)
        found = []
        for fit in fits:
            correct = fit.correct[fit.test_mask]
            found.append(accuracy_by_homophily(correct, h[fit.test_mask]))
        accuracies = np.array([run.accuracy.tolist() for run in found])
        by_model[label] = {
            "all": summarise([fit.accuracy for fit in fits]),
            "intervals": [_summarise_defined(column) for column in accuracies.T],
        }
    # The splits, and so the numbers of test nodes, are the same for all models.
    nodes = np.mean([run.nodes.tolist() for run in found], 0)
    return {"name": name, "models": by_model, "nodes": nodes.tolist()}


def _summarise_defined(values: np.ndarray) -> dict[str, Any] | None:
    """Summarise the runs that have a test node in the interval."""
    defined = [float(value) for value in values if not np.isnan(value)]
    return summarise(defined) if defined else None


def draw(rows: dict[str, Any]) -> Any:
    """Draw the means with their 95 % confidence intervals; the number of test nodes below.

    Bars of fewer than ten test nodes are faded.
    """
    with canvas() as plt:
        figure, axes = panels(plt, len(rows["graphs"]), width=3.1, height=2.7, sharey=True)
        for ax, graph in zip(axes[0], rows["graphs"]):
            _draw_panel(ax, graph)
        axes[0, 0].set_ylabel("accuracy (%)")
        axes[0, 0].legend(loc="upper left")
        headline(figure, _finding(rows["graphs"]))
    return figure


def _gain(graph: dict[str, Any], other: str) -> Comparison:
    """Compare the filter per node with another model on the same splits."""
    models = graph["models"]
    return paired(models["filter per node"]["all"]["values"], models[other]["all"]["values"])


def _finding(graphs: list[dict[str, Any]]) -> str:
    won = {}
    for other in ("one filter", "GCN"):
        gains = [_gain(graph, other) for graph in graphs]
        won[other] = sum(gain.difference > (gain.ci95 or 0) for gain in gains)
    return (
        f"A filter per node beats one filter on {won['one filter']} of {len(graphs)} graphs, "
        f"and GCN on {won['GCN']} (95 % confidence)"
    )


def _draw_panel(ax: Any, graph: dict[str, Any]) -> None:
    count = len(graph["nodes"])
    undefined = {"mean": np.nan, "ci95": 0.0}
    for i, (label, model) in enumerate(graph["models"].items()):
        intervals = [interval or undefined for interval in model["intervals"]]
        means = [100 * interval["mean"] for interval in intervals]
        half = [100 * (interval["ci95"] or 0) for interval in intervals]
        errors = clip_errors(means, half)
        x = np.arange(count) + (i - 1) * _WIDTH
        few = np.array(graph["nodes"]) < FEW_NODES
        draw_bars(ax, x, means, errors, _WIDTH, _HATCHES[i], label, few)
    limits = np.linspace(0, 1, count + 1)
    ticks = []
    for low, high, nodes in zip(limits, limits[1:], graph["nodes"]):
        ticks.append(f"{low:.1f}–{high:.1f}\n{nodes:.0f}")
    ax.set_xticks(range(count), ticks, fontsize=7)
    gain = _gain(graph, "one filter")
    ax.set_title(f"{title(graph['name'])}: {signed(100 * gain.difference)} over one filter")
    ax.set(xlabel="h of the node / test nodes", ylim=(0, 105))
