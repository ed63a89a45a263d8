"""Degree distributions of several graphs."""

from collections.abc import Sequence
from typing import Any

from nfgnn.explain.figures import degrees
from nfgnn.paper.trained_models import TrainedModels

DATASETS = ("cora", "texas", "chameleon", "actor")
draw = degrees.draw


def rows(models: TrainedModels, datasets: Sequence[str]) -> dict[str, Any]:
    """Return the share of nodes per degree, in bins that double."""
    graphs = []
    for name in datasets:
        data = models.graph(name)
        graphs.append(degrees.row(name, data.edge_index, data.num_nodes))
    return {"graphs": graphs}
