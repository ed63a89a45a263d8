"""What is learned: filters as layers (:mod:`nfgnn.nn.conv`) and models made of them (:mod:`nfgnn.nn.models`)."""

from nfgnn.nn.conv import NFConv, PolyConv
from nfgnn.nn.dropout import dropout
from nfgnn.nn.linear import Linear
from nfgnn.nn.models import MLP, MODELS, NFGNN, PolyGNN, ScalableNFGNN

__all__ = [
    "MLP",
    "MODELS",
    "NFGNN",
    "Linear",
    "NFConv",
    "PolyConv",
    "PolyGNN",
    "ScalableNFGNN",
    "dropout",
]
