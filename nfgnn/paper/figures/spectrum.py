"""The spectrum of the normalised Laplacian: which frequencies a graph has."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nfgnn.analysis.spectrum import Spectrum, spectrum
from nfgnn.explain.figure_style import canvas, panels, title
from nfgnn.explain.page_style import COLOURS
from nfgnn.paper.lab import Lab

DATASETS = ("cora", "texas", "chameleon", "actor")


def rows(lab: Lab, datasets: Sequence[str]) -> dict[str, Any]:
    """Shares of eigenvalues of every graph."""
    graphs = ((name, lab.graph(name)) for name in datasets)
    return {
        "graphs": [row(name, spectrum(data.edge_index, data.num_nodes)) for name, data in graphs]
    }


def row(name: str, found: Spectrum) -> dict[str, Any]:
    """One graph as plain numbers."""
    return {
        "name": name,
        "exact": found.exact,
        "edges": [round(x, 6) for x in found.edges.tolist()],
        "shares": [round(x, 7) for x in found.shares.tolist()],
        "error": [round(x, 7) for x in found.error.tolist()],
    }


def draw(rows: dict[str, Any]) -> Any:
    """One panel per graph; where the density is estimated, with its standard error."""
    graphs = rows["graphs"]
    with canvas() as plt:
        figure, axes = panels(plt, len(graphs), width=2.5 if len(graphs) > 1 else 4.2, height=2.6)
        for i, (ax, graph) in enumerate(zip(axes[0], graphs)):
            edges = np.array(graph["edges"])
            ax.stairs(graph["shares"], edges, fill=True, color=COLOURS[0], alpha=0.8)
            if not graph["exact"]:
                middle = (edges[1:] + edges[:-1]) / 2
                ax.errorbar(
                    middle, graph["shares"], graph["error"], fmt="none", ecolor=COLOURS[1], lw=0.8
                )
            ax.set(xlabel="frequency λ", ylabel="" if i else "share of eigenvalues", xlim=(0, 2))
            ax.set_title(title(graph["name"]) + ("" if graph["exact"] else " (estimate)"))
    return figure
