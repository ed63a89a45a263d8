"""Models for node classification: features and edges in, logits out.

Every file here is one model, found by itself when it lies in this folder: a class under
:func:`~nfgnn.nn.models.registry.register_model`. :class:`NFGNN` is the paper's; :class:`Decoupled` is the shape that it
shares with all models that first transform and then filter, :class:`Scalable` that of those that first filter.
"""

import importlib
import pkgutil

from nfgnn.nn.models.decoupled import Decoupled
from nfgnn.nn.models.mlp import MLP
from nfgnn.nn.models.nfgnn import NFGNN
from nfgnn.nn.models.polygnn import PolyGNN
from nfgnn.nn.models.registry import MODELS, ModelEntry, find_model, register_model
from nfgnn.nn.models.scalable import Scalable, ScalableNFGNN

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "MLP",
    "MODELS",
    "NFGNN",
    "Decoupled",
    "ModelEntry",
    "PolyGNN",
    "Scalable",
    "ScalableNFGNN",
    "find_model",
    "register_model",
]
