"""What is learned: filters as layers (:mod:`nfgnn.nn.conv`) and models made of them (:mod:`nfgnn.nn.models`)."""

from nfgnn.nn.conv import NFConv, PolyConv
from nfgnn.nn.dropout import dropout
from nfgnn.nn.linear import Linear
from nfgnn.nn.node_model import NodeModel, as_node_model

# isort: split
# After the base class and the layers, so that a model's file may import them from this package.
from nfgnn.nn.models import MLP, MODELS, NFGNN, PolyGNN, ScalableNFGNN

__all__ = [
    "MLP",
    "MODELS",
    "NFGNN",
    "Linear",
    "NFConv",
    "NodeModel",
    "PolyConv",
    "PolyGNN",
    "ScalableNFGNN",
    "as_node_model",
    "dropout",
]
