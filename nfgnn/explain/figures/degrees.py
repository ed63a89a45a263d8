"""Degree distribution on logarithmic axes."""

from typing import Any

import numpy as np
from torch import Tensor

from nfgnn.analysis import degree_histogram
from nfgnn.explain.figure_style import COLOURS, canvas, headline, panels, percent, title


def row(name: str, edge_index: Tensor, num_nodes: int) -> dict[str, Any]:
    """Return the share of nodes in the bins [1, 2), [2, 4), [4, 8), … and of isolated nodes."""
    degrees, counts = (values.numpy() for values in degree_histogram(edge_index, num_nodes))
    # Bins that double show heavy tails, which are common, at an even resolution.
    top = int(degrees.max()).bit_length()
    limits = [2**k for k in range(top + 1)]
    shares = np.zeros(0)
    if top:
        shares = np.histogram(degrees, bins=limits, weights=counts)[0] / num_nodes
    return {
        "name": name,
        "limits": limits,
        "shares": [round(share, 7) for share in shares.tolist()],
        "isolated": float(counts[degrees == 0].sum() / num_nodes),
    }


def draw(rows: dict[str, Any]) -> Any:
    """Draw one panel per graph."""
    graphs = rows["graphs"]
    width = 2.5 if len(graphs) > 1 else 4.2
    with canvas() as plt:
        figure, axes = panels(plt, len(graphs), width=width, height=2.6)
        for ax, graph in zip(axes[0], graphs):
            if graph["shares"]:
                ax.stairs(graph["shares"], graph["limits"], fill=True, color=COLOURS[2], alpha=0.8)
                ax.set_xscale("log", base=2)
                ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
                ax.set_yscale("log")
            ax.set(xlabel="degree", title=_panel_title(graph, alone=len(graphs) == 1))
        axes[0, 0].set_ylabel("share of nodes")
        if len(graphs) > 1:
            headline(figure, _finding(graphs))
    return figure


def _half_below(graph: dict[str, Any]) -> int:
    """Return the lowest upper limit of a bin below which at least half of the nodes are."""
    below = graph["isolated"] + np.cumsum(graph["shares"])
    # Shares are rounded, so their sum may be slightly below 1.
    place = min(int(np.searchsorted(below, 0.5)), len(below) - 1)
    return int(graph["limits"][place + 1])


def _hub(graph: dict[str, Any]) -> int:
    """Return the lower limit of the last bin: the largest degree is at least that."""
    return int(graph["limits"][-1]) // 2


def _panel_title(graph: dict[str, Any], alone: bool) -> str:
    if graph["isolated"] >= 0.5:
        isolated = percent(graph["isolated"])
        if alone:
            return f"{isolated} of the nodes have no neighbour"
        return f"{title(graph['name'])}: {isolated} isolated"
    if alone:
        return f"Half of the nodes have fewer than {_half_below(graph):,} neighbours"
    return f"{title(graph['name'])}: half below {_half_below(graph):,}"


def _finding(graphs: list[dict[str, Any]]) -> str:
    connected = [graph for graph in graphs if graph["shares"]]
    if not connected:
        return "No graph has edges"
    typical = max(_half_below(graph) for graph in connected)
    hub = min(_hub(graph) for graph in connected)
    return (
        f"Half of the nodes have fewer than {typical:,} neighbours on every graph; "
        f"the largest hubs have at least {hub:,}"
    )
