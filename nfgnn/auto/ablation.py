"""A graph without its edges, and without its features.

Families of models differ in more than in what they use. A deep network that reads edges may be
better than an MLP because it is deep, and one that reads features may be better than LINK because
of its filter. The best configuration is therefore also trained on the same graph without edges and
without features, and the report compares it with itself.
"""

from copy import copy
from dataclasses import replace

import torch
from torch_geometric.data import Data

from nfgnn.auto.result import FEATURES, LINKS
from nfgnn.auto.validation import ValidationSplits
from nfgnn.data import degree_features
from nfgnn.training import Graph

ABLATION = "ablation"
"""Origin of configurations that were trained without edges or without features."""
SUFFIXES = {FEATURES: "without edges", LINKS: "without features"}
"""What was left out, by the family that the model then belongs to."""


def ablated_splits(splits: ValidationSplits) -> dict[str, ValidationSplits]:
    """Return the same splits of the graph without edges, and without features.

    A graph that has no edges, or no features of its own, has no such version.

    Returns:
        Splits by the family that any model belongs to on them.
    """
    data = splits.graph.data
    found = {}
    # What comes first is trained first. MLPs also show what a model reaches without edges.
    if data.num_edges > 0 and not has_computed_features(data):
        found[LINKS] = _without_features(data)
    if data.num_edges > 0:
        found[FEATURES] = _without_edges(data)
    for family, other in found.items():
        # The name tells the runs apart from those on the whole graph.
        other.name = f"{splits.graph.name} {SUFFIXES[family]}"
    return {family: replace(splits, graph=Graph.of(other)) for family, other in found.items()}


def has_computed_features(data: Data) -> bool:
    """Whether the features are those that a graph without features gets."""
    if data.x.layout != torch.strided:
        return False
    return torch.equal(data.x, degree_features(data.edge_index, data.num_nodes))


def _without_edges(data: Data) -> Data:
    other = copy(data)
    other.edge_index = data.edge_index[:, :0]
    if data.get("edge_weight") is not None:
        other.edge_weight = data.edge_weight[:0]
    return other


def _without_features(data: Data) -> Data:
    other = copy(data)
    other.x = degree_features(data.edge_index, data.num_nodes)
    for key in ("feature_names", "feature_encoding"):
        if key in other:
            del other[key]
    return other
