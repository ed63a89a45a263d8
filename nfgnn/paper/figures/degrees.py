"""Degree distributions of several graphs."""

from collections.abc import Sequence
from typing import Any

from nfgnn.explain.figures import degrees
from nfgnn.paper.lab import Lab

DATASETS = ("cora", "texas", "chameleon", "actor")
draw = degrees.draw


def rows(lab: Lab, datasets: Sequence[str]) -> dict[str, Any]:
    """Return the share of nodes per degree, in bins that double."""
    graphs = []
    for name in datasets:
        data = lab.graph(name)
        graphs.append(degrees.row(name, data.edge_index, data.num_nodes))
    return {"graphs": graphs}
