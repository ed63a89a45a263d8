"""Spectrum of the normalised Laplacian: the frequencies of a graph."""

from typing import Any

import numpy as np

from nfgnn.analysis import Spectrum
from nfgnn.explain.figure_style import COLOURS, canvas, panels, title


def row(name: str, spectrum: Spectrum) -> dict[str, Any]:
    """Return the shares of eigenvalues of one graph as plain numbers."""
    return {
        "name": name,
        "exact": spectrum.exact,
        "edges": [round(x, 6) for x in spectrum.edges.tolist()],
        "shares": [round(x, 7) for x in spectrum.shares.tolist()],
        "error": [round(x, 7) for x in spectrum.error.tolist()],
    }


def draw(rows: dict[str, Any]) -> Any:
    """Draw one panel per graph, with standard errors where the density is an estimate."""
    graphs = rows["graphs"]
    width = 2.5 if len(graphs) > 1 else 4.2
    with canvas() as plt:
        figure, axes = panels(plt, len(graphs), width=width, height=2.6)
        for ax, graph in zip(axes[0], graphs):
            edges = np.array(graph["edges"])
            shares = graph["shares"]
            name = title(graph["name"])
            ax.stairs(shares, edges, fill=True, color=COLOURS[0], alpha=0.8)
            if not graph["exact"]:
                middle = (edges[1:] + edges[:-1]) / 2
                ax.errorbar(middle, shares, graph["error"], fmt="none", ecolor=COLOURS[1], lw=0.8)
                name += " (estimate)"
            ax.set(xlabel="frequency λ", xlim=(0, 2), title=name)
        axes[0, 0].set_ylabel("share of eigenvalues")
    return figure
