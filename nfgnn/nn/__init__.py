"""Layers, gates and models: features and edges in, logits out.

:mod:`nfgnn.nn.conv` has the filters as layers, :mod:`nfgnn.nn.gates` the gates of :class:`NFConv`,
:mod:`nfgnn.nn.head_gates` those of :class:`SpectralConv`, :mod:`nfgnn.nn.models` the models.
:class:`NodeModel` is the contract between models and trainers.
"""

from nfgnn.nn.argument_checks import check_counts
from nfgnn.nn.batch_norm import RunningStatistics
from nfgnn.nn.conv import OPERATORS, NFConv, PolyConv, SpectralConv
from nfgnn.nn.dropout import dropout
from nfgnn.nn.gates import GATES, Gate
from nfgnn.nn.head_gates import HEAD_GATES, HeadGate
from nfgnn.nn.linear import Linear
from nfgnn.nn.node_model import NodeModel, as_node_model, has_weights_per_node
from nfgnn.nn.term_attention import TermAttention

# isort: split
# The file of a model may import the names above from this package.
from nfgnn.nn.models import (
    LINK_CHOICES,
    MLP,
    MODELS,
    NFGNN,
    Decoupled,
    ModelEntry,
    NFNet,
    PolyGNN,
    ResidualGAT,
    ResidualGATSep,
    ResidualGCN,
    ResidualSAGE,
    Scalable,
    ScalableNFGNN,
    find_model,
    register_model,
)

__all__ = [
    "GATES",
    "HEAD_GATES",
    "LINK_CHOICES",
    "MLP",
    "MODELS",
    "NFGNN",
    "OPERATORS",
    "Decoupled",
    "Gate",
    "HeadGate",
    "Linear",
    "ModelEntry",
    "NFConv",
    "NFNet",
    "NodeModel",
    "PolyConv",
    "PolyGNN",
    "ResidualGAT",
    "ResidualGATSep",
    "ResidualGCN",
    "ResidualSAGE",
    "RunningStatistics",
    "Scalable",
    "ScalableNFGNN",
    "SpectralConv",
    "TermAttention",
    "as_node_model",
    "check_counts",
    "dropout",
    "find_model",
    "has_weights_per_node",
    "register_model",
]
