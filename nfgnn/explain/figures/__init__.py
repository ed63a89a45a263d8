"""Figures that describe one graph, or several graphs in panels next to each other.

Every module has ``row``, which returns the data of one graph as plain numbers, and ``draw``, which
turns ``{"graphs": [row, ...]}``, computed or read from JSON, into a matplotlib figure.
"""

from collections.abc import Callable
from typing import Any

from nfgnn.explain.figures import degrees, homophily_histograms, spectrum

DRAW: dict[str, Callable[[dict[str, Any]], Any]] = {
    "degrees": degrees.draw,
    "homophily_histograms": homophily_histograms.draw,
    "spectrum": spectrum.draw,
}
"""The ``draw`` function of every figure by name."""

__all__ = ["DRAW", "degrees", "homophily_histograms", "spectrum"]
