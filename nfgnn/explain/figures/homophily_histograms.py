"""Histograms of h and S over all nodes, for one and two hops (Figures 2 and 4 of the paper)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nfgnn.analysis import entropy_of_counts, homophily_of_counts
from nfgnn.explain.figure_style import COLOURS, canvas, headline, panels, percent, title

BINS = 20
HOPS = ("1 hop", "within 2 hops")


def row(name: str, counts: Sequence[Tensor], y: Tensor) -> dict[str, Any]:
    """Return the histograms of one graph.

    Args:
        name: the graph's name.
        counts: class counts within one and two hops, from
            :func:`~nfgnn.analysis.nested_class_counts`.
        y: labels ``[n]``, -1 where unlabelled.
    """
    top = math.log(max(2, counts[0].shape[1]))
    h = {}
    S = {}
    for hops, count in zip(HOPS, counts):
        h[hops] = _histogram(homophily_of_counts(count, y), 1.0)
        S[hops] = _histogram(entropy_of_counts(count), top)
    return {"name": name, "nodes": len(y), "h": h, "S": S, "top": top}


def _histogram(values: Tensor, top: float) -> dict[str, Any]:
    defined = values[~values.isnan()].clamp(0, top)
    shares = torch.histc(defined, BINS, 0.0, top) / max(1, len(defined))
    mean = None
    quartiles = None
    if len(defined):
        mean = float(defined.mean())
        quartiles = np.quantile(defined.numpy(), (0.25, 0.5, 0.75)).tolist()
    return {
        "shares": [round(share, 6) for share in shares.tolist()],
        "mean": mean,
        "quartiles": quartiles,
        "undefined": len(values) - len(defined),
    }


def draw(rows: dict[str, Any]) -> Any:
    """Draw one column per graph: h in the upper panel, S in the lower one."""
    graphs = rows["graphs"]
    width = 2.5 if len(graphs) > 1 else 4.2
    with canvas() as plt:
        figure, axes = panels(plt, len(graphs), rows=2, width=width)
        for column, graph in zip(axes.T, graphs):
            column[0].set_title(_panel_title(graph, alone=len(graphs) == 1))
            _draw_histograms(column[0], graph["h"], 1.0)
            _draw_histograms(column[1], graph["S"], graph["top"])
            column[0].set_xlabel("same-class share h")
            column[1].set_xlabel("label entropy S")
        for ax in axes[:, 0]:
            ax.set_ylabel("share of nodes")
        axes[0, 0].legend(loc="best")
        if len(graphs) > 1:
            headline(figure, _finding(graphs))
    return figure


def _below_half(graph: dict[str, Any]) -> float:
    """Return the share of nodes with h < ½ within one hop."""
    return float(sum(graph["h"][HOPS[0]]["shares"][: BINS // 2]))


def _panel_title(graph: dict[str, Any], alone: bool) -> str:
    share = percent(_below_half(graph))
    if alone:
        return f"{share} of the nodes have mostly other-class neighbours"
    return f"{title(graph['name'])}: {share} below h = ½"


def _finding(graphs: list[dict[str, Any]]) -> str:
    minorities = [min(_below_half(graph), 1 - _below_half(graph)) for graph in graphs]
    return (
        f"Between {percent(min(minorities))} and {percent(max(minorities))} of the nodes differ "
        "from the common pattern of their graph"
    )


def _draw_histograms(ax: Any, histograms: dict[str, Any], top: float) -> None:
    """Draw one outline per number of hops, with a vertical line at the mean."""
    edges = np.linspace(0, top, BINS + 1)
    # Lines differ in colour and in dashes, for print in black and white.
    styles = zip(HOPS, COLOURS, ("-", "--"), (":", "-."))
    for hops, colour, outline, mean_line in styles:
        histogram = histograms[hops]
        ax.stairs(histogram["shares"], edges, color=colour, lw=1.4, label=hops, ls=outline)
        ax.stairs(histogram["shares"], edges, color=colour, fill=True, alpha=0.18)
        if histogram["mean"] is not None:
            ax.axvline(histogram["mean"], color=colour, lw=0.9, ls=mean_line)
    ax.set_xlim(0, top)
