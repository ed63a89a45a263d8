"""h and S of all nodes, for direct neighbours and within two hops (the paper's Figures 2 and 4)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nfgnn.analysis import entropy_of_counts, homophily_of_counts, nested_class_counts
from nfgnn.explain.figure_style import canvas, panels, title
from nfgnn.explain.page_style import COLOURS
from nfgnn.paper.lab import Lab

DATASETS = ("cora", "citeseer", "texas", "actor")
BINS = 20
HOPS = ("1 hop", "within 2 hops")


def rows(lab: Lab, datasets: Sequence[str]) -> dict[str, Any]:
    """Histograms of every graph."""
    graphs = []
    for name in datasets:
        data = lab.graph(name)
        graphs.append(histograms(name, nested_class_counts(data.edge_index, data.y, 2), data.y))
    return {"graphs": graphs}


def histograms(name: str, counts: Sequence[Tensor], y: Tensor) -> dict[str, Any]:
    """The row of one graph, from the class counts of its neighbourhoods."""
    top = math.log(max(2, counts[0].shape[1]))
    found: dict[str, Any] = {"name": name, "nodes": len(y), "h": {}, "S": {}, "top": top}
    for hops, count in zip(HOPS, counts):
        found["h"][hops] = _histogram(homophily_of_counts(count, y), 1.0)
        found["S"][hops] = _histogram(entropy_of_counts(count), top)
    return found


def _histogram(values: Tensor, top: float) -> dict[str, Any]:
    defined = values[~values.isnan()].clamp(0, top)
    shares = torch.histc(defined, BINS, 0.0, top) / max(1, len(defined))
    return {
        "shares": [round(share, 6) for share in shares.tolist()],
        "mean": float(defined.mean()) if len(defined) else None,
        "quartiles": np.quantile(defined.numpy(), (0.25, 0.5, 0.75)).tolist()
        if len(defined)
        else None,
        "undefined": int(values.isnan().sum()),
    }


def draw(rows: dict[str, Any]) -> Any:
    """One column per graph: h above, S below."""
    graphs = rows["graphs"]
    with canvas() as plt:
        figure, axes = panels(plt, len(graphs), rows=2, width=2.5 if len(graphs) > 1 else 4.2)
        for column, graph in enumerate(graphs):
            for row, (key, label) in enumerate(
                (("h", "same-class share h"), ("S", "label entropy S"))
            ):
                _draw_one(axes[row, column], graph[key], 1.0 if key == "h" else graph["top"])
                axes[row, column].set(xlabel=label, ylabel="" if column else "share of nodes")
            axes[0, column].set_title(title(graph["name"]))
        axes[0, 0].legend(fontsize=8)
    return figure


def _draw_one(ax: Any, histogram: dict[str, Any], top: float) -> None:
    edges = np.linspace(0, top, BINS + 1)
    for i, hops in enumerate(HOPS):
        shares = histogram[hops]["shares"]
        ax.stairs(
            shares,
            edges,
            color=COLOURS[i],
            lw=1.4,
            fill=False,
            label=hops,
            ls="-" if i == 0 else "--",
        )
        ax.stairs(shares, edges, color=COLOURS[i], fill=True, alpha=0.18)
        if histogram[hops]["mean"] is not None:
            ax.axvline(
                histogram[hops]["mean"], color=COLOURS[i], lw=0.9, ls=":" if i == 0 else "-."
            )
    ax.set_xlim(0, top)
