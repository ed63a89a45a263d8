"""h and S of the nodes of several graphs (Figures 2 and 4 of the paper)."""

from collections.abc import Sequence
from typing import Any

from nfgnn.analysis import nested_class_counts
from nfgnn.explain.figures import homophily_histograms
from nfgnn.paper.trained_models import TrainedModels

DATASETS = ("cora", "citeseer", "texas", "actor")
draw = homophily_histograms.draw


def rows(models: TrainedModels, datasets: Sequence[str]) -> dict[str, Any]:
    """Return the histograms of every graph."""
    graphs = []
    for name in datasets:
        data = models.graph(name)
        counts = nested_class_counts(data.edge_index, data.y, 2)
        graphs.append(homophily_histograms.row(name, counts, data.y))
    return {"graphs": graphs}
