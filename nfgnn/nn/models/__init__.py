"""Models for node classification.

Every file in this folder defines one model, or the two placements of its filter, as classes under
:func:`register_model`. All files are imported below, so a new one needs no further registration.
:class:`NFGNN` is the model of the paper. :class:`Decoupled` is the base class of models that filter
after the MLP, :class:`Scalable` of those that filter before it.
"""

import importlib
import pkgutil

from nfgnn.nn.models.adjacency_mlp import LINK_CHOICES
from nfgnn.nn.models.decoupled import Decoupled
from nfgnn.nn.models.mlp import MLP
from nfgnn.nn.models.nfgnn import NFGNN, ScalableNFGNN
from nfgnn.nn.models.nfnet import NFNet
from nfgnn.nn.models.polygnn import PolyGNN
from nfgnn.nn.models.registry import MODELS, ModelEntry, find_model, register_model
from nfgnn.nn.models.residual_gat import ResidualGAT, ResidualGATSep
from nfgnn.nn.models.residual_gcn import ResidualGCN
from nfgnn.nn.models.residual_sage import ResidualSAGE
from nfgnn.nn.models.scalable import Scalable

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "LINK_CHOICES",
    "MLP",
    "MODELS",
    "NFGNN",
    "Decoupled",
    "ModelEntry",
    "NFNet",
    "PolyGNN",
    "ResidualGAT",
    "ResidualGATSep",
    "ResidualGCN",
    "ResidualSAGE",
    "Scalable",
    "ScalableNFGNN",
    "find_model",
    "register_model",
]
