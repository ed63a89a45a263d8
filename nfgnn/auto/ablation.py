"""A graph without its edges, and one whose features are shuffled among the nodes.

Families of models differ in more than in what they use. A deep network that reads edges may be
better than an MLP because it is deep, and one that reads features may be better than LINK because
of its filter. The best configuration is therefore also trained on the same graph without edges and
with shuffled features, and the report compares it with itself.

Shuffled features have the same values and say nothing about their node. Constant features would not
do: numbers that differ from node to node help a network to tell nodes apart, even if they are
noise.
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
"""Origin of configurations that were trained without edges or with shuffled features."""
SUFFIXES = {FEATURES: "without edges", LINKS: "with shuffled features"}
"""What was changed, by the family that the model then belongs to."""


def ablated_splits(splits: ValidationSplits) -> dict[str, ValidationSplits]:
    """Return the same splits of the graph without edges, and with shuffled features.

    A graph that has no edges, or no features of its own, has no such version.

    Returns:
        Splits by the family that any model belongs to on them.
    """
    data = splits.graph.data
    found = {}
    # What comes first is trained first. MLPs also show what a model reaches without edges.
    if data.num_edges > 0 and not has_computed_features(data):
        found[LINKS] = _with_shuffled_features(data)
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


def _with_shuffled_features(data: Data) -> Data:
    other = copy(data)
    order = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(0))
    if data.x.layout == torch.strided:
        other.x = data.x[order]
    else:
        other.x = data.x.to_sparse_coo().index_select(0, order).coalesce().to_sparse_csr()
    return other
