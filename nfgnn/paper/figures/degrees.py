"""How many links nodes have, on logarithmic axes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from nfgnn.analysis import degree_histogram
from nfgnn.explain.figure_style import canvas, panels, title
from nfgnn.explain.page_style import COLOURS
from nfgnn.paper.lab import Lab

DATASETS = ("cora", "texas", "chameleon", "actor")


def rows(lab: Lab, datasets: Sequence[str]) -> dict[str, Any]:
    """Share of nodes per degree, in bins that double."""
    graphs = ((name, lab.graph(name)) for name in datasets)
    return {"graphs": [row(name, data.edge_index, data.num_nodes) for name, data in graphs]}


def row(name: str, edge_index: Tensor, num_nodes: int) -> dict[str, Any]:
    """Bins [1, 2), [2, 4), [4, 8), … and the share of nodes in each; nodes without links beside them."""
    degrees, counts = (values.numpy() for values in degree_histogram(edge_index, num_nodes))
    top = int(degrees.max()).bit_length()
    limits = [2**k for k in range(top + 1)]
    shares = (
        np.histogram(degrees, bins=limits, weights=counts)[0] / num_nodes if top else np.zeros(0)
    )
    isolated = float(counts[degrees == 0].sum() / num_nodes)
    return {
        "name": name,
        "limits": limits,
        "shares": [round(s, 7) for s in shares.tolist()],
        "isolated": isolated,
    }


def draw(rows: dict[str, Any]) -> Any:
    """One panel per graph."""
    graphs = rows["graphs"]
    with canvas() as plt:
        figure, axes = panels(plt, len(graphs), width=2.5 if len(graphs) > 1 else 4.2, height=2.6)
        for i, (ax, graph) in enumerate(zip(axes[0], graphs)):
            if graph["shares"]:
                ax.stairs(graph["shares"], graph["limits"], fill=True, color=COLOURS[2], alpha=0.8)
                ax.set_xscale("log", base=2)
                ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
                ax.set_yscale("log")
            ax.set(
                xlabel="links of a node",
                ylabel="" if i else "share of nodes",
                title=title(graph["name"]),
            )
    return figure
