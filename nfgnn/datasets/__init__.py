"""Graphs: a name, files or an object in, one checked :class:`torch_geometric.data.Data` out."""

from nfgnn.datasets.check import check_graph
from nfgnn.datasets.load import load_dataset
from nfgnn.datasets.mixed import mixed_graph

__all__ = ["check_graph", "load_dataset", "mixed_graph"]
