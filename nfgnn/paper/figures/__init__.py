"""The figures of the paper, one module each.

A figure has ``DATASETS``, the graphs that it shows by default; ``rows(models, datasets)``, which
takes graphs and trained models from :class:`~nfgnn.paper.trained_models.TrainedModels` and returns
plain data; and ``draw(rows)``, which turns that data, computed or read from JSON, into a matplotlib
figure. ``nfgnn reproduce figures`` makes all figures of :data:`FIGURES`.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from nfgnn.errors import unknown_name
from nfgnn.paper.figures import (
    degrees,
    global_filters,
    homophily_accuracy,
    homophily_histograms,
    jaccard_distance,
    k_rank,
    node_filters,
    spectrum,
    translation,
)
from nfgnn.paper.trained_models import TrainedModels


class Figure(Protocol):
    """What the module of a figure provides."""

    @property
    def DATASETS(self) -> Sequence[str]:
        """Graphs that the figure shows by default."""

    def rows(self, models: TrainedModels, datasets: Sequence[str]) -> dict[str, Any]:
        """Return the data of the figure, which JSON can hold."""

    def draw(self, rows: dict[str, Any]) -> Any:
        """Return the matplotlib figure."""


FIGURES: dict[str, Figure] = {
    "degrees": degrees,
    "global_filters": global_filters,
    "homophily_accuracy": homophily_accuracy,
    "homophily_histograms": homophily_histograms,
    "jaccard_distance": jaccard_distance,
    "k_rank": k_rank,
    "node_filters": node_filters,
    "spectrum": spectrum,
    "translation": translation,
}


def find_figure(name: str) -> Figure:
    """Return a figure by name."""
    key = name.replace("-", "_")
    if key not in FIGURES:
        raise unknown_name("figure", name, FIGURES)
    return FIGURES[key]
