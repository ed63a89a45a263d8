"""Spectrum of the normalised Laplacian: the frequencies of a graph."""

from typing import Any

import numpy as np

from nfgnn.analysis import Spectrum
from nfgnn.explain.figure_style import (
    COLOURS,
    canvas,
    clip_errors,
    headline,
    panels,
    percent,
    title,
)


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
            ax.stairs(shares, edges, fill=True, color=COLOURS[0], alpha=0.8)
            if not graph["exact"]:
                middle = (edges[1:] + edges[:-1]) / 2
                error = clip_errors(shares, graph["error"], high=1.0)
                ax.errorbar(middle, shares, error, fmt="none", ecolor=COLOURS[1], lw=0.8)
            ax.set(xlabel="frequency λ", xlim=(0, 2))
            ax.set_title(_panel_title(graph, alone=len(graphs) == 1))
        axes[0, 0].set_ylabel("share of eigenvalues")
        if len(graphs) > 1:
            headline(figure, _finding(graphs))
    return figure


def _peak(graph: dict[str, Any]) -> tuple[float, float, float]:
    """Return the largest share, and the limits of its bin."""
    return max(zip(graph["shares"], graph["edges"], graph["edges"][1:]))


def _panel_title(graph: dict[str, Any], alone: bool) -> str:
    share, low, high = _peak(graph)
    # Values that are exact have no sign of approximation.
    about = "" if graph["exact"] else "≈ "
    peak = f"{about}{percent(share)} near λ = {(low + high) / 2:.1f}"
    if alone:
        return f"Most common frequencies: {peak}"
    return f"{title(graph['name'])}: {peak}"


def _finding(graphs: list[dict[str, Any]]) -> str:
    at_one = 0
    for graph in graphs:
        _, low, high = _peak(graph)
        at_one += low <= 1 <= high
    return f"Eigenvalues are most common at λ = 1 on {at_one} of {len(graphs)} graphs"
