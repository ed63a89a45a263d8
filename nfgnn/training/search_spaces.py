"""The grids of ``nfgnn tune`` and ``nfgnn auto``: the values that every setting may take.

The paper's own grid for NFGNN is :data:`PAPER_GRID` (with dropout 0.5, K = 10, rank 1). The wide
grids go beyond it. Settings in :data:`NUMERIC` do not change the shape of the model, so runs that
differ in nothing else can be trained as one computation.
"""

from collections.abc import Mapping
from typing import Any

from nfgnn.nn import GATES, HEAD_GATES, LINK_CHOICES, OPERATORS, find_model
from nfgnn.spectral import BASES, RESPONSES
from nfgnn.training.config import RunConfig

Space = dict[str, tuple[Any, ...]]

# The appendix of the paper does not mention α. Its values are those of GPRGNN.
PAPER_GRID: Space = {
    "hidden_channels": (16, 32, 64),
    "lr": (0.01, 0.05),
    "filter_lr": (0.001, 0.005, 0.01),
    "weight_decay": (0.0001, 0.0005, 0.001),
    "filter_dropout": (0.0, 0.1, 0.2, 0.5, 0.7, 0.8, 0.9),
    "alpha": (0.1, 0.2, 0.5, 0.9, 1.0),
}
NUMERIC: Space = {
    "lr": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1),
    "weight_decay": (0.0, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01),
    "filter_lr": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    "filter_weight_decay": (0.0, 0.0005, 0.005),
    "dropout": (0.0, 0.3, 0.5, 0.7, 0.8),
    "filter_dropout": (0.0, 0.1, 0.2, 0.5, 0.7, 0.8, 0.9),
    "alpha": (0.05, 0.1, 0.2, 0.5, 0.9, 1.0),
    "label_smoothing": (0.0, 0.1, 0.2, 0.3),
}
_FILTER: Space = {"hidden_channels": (16, 32, 64, 128), "K": (1, 2, 3, 5, 10)}
_POLYNOMIAL: Space = {
    "basis": tuple(BASES),
    "self_loops": (False, True),
    "init": tuple(name for name in ("ppr", *RESPONSES) if name != "random"),
    "link": LINK_CHOICES,
    **_FILTER,
}
_RESIDUAL: Space = {"hidden_channels": (64, 128), "num_layers": (2, 4, 8, 12)}
_STRUCTURES: dict[str, Space] = {
    "NFNet": {
        "K": (1, 2, 3),
        "operator": OPERATORS,
        "gate": ("none", *HEAD_GATES),
        **_RESIDUAL,
    },
    "ResidualGCN": _RESIDUAL,
    "ResidualSAGE": _RESIDUAL,
    "ResidualGAT": _RESIDUAL,
    "ResidualGATSep": _RESIDUAL,
    "NFGNN": {**_POLYNOMIAL, "rank": (1, 3, 5), "gate": tuple(GATES)},
    "PolyGNN": _POLYNOMIAL,
    "GPRGNN": _FILTER,
    "BernNet": _FILTER,
    "APPNP": _FILTER,
    "ChebNet": {"hidden_channels": (16, 32, 64), "K": (1, 2, 3)},
    "FAGCN": {"hidden_channels": (16, 32, 64), "K": (1, 2, 3), "eps": (0.1, 0.3, 0.5)},
    "BMGCN": {"enhance": (0.8, 1.0, 2.0, 3.0, 4.0), "self_loop": (0.0, 1.5, 3.0)},
    "GCN": {"hidden_channels": (16, 32, 64, 128)},
    "SGC": {"K": (1, 2, 3)},
    "ACMGCN": {
        "hidden_channels": (32, 64, 128, 256),
        "num_layers": (1, 2, 3),
        "structure": (False, True),
    },
    "FSGNN": {
        "hidden_channels": (32, 64, 128, 256),
        "num_layers": (1, 2),
        "K": (2, 3, 5, 8),
        "normalize": (True, False),
    },
    "PolyFormer": {
        "hidden_channels": (32, 64, 128, 256),
        "num_layers": (1, 2),
        "heads": (1, 2, 4, 8, 16),
        "ffn_channels": (32, 64, 128, 256),
        "damping": (0.0, 1.0, 1.5, 2.0),
        "K": (2, 4, 6, 8, 10),
        "basis": ("monomial", "chebyshev"),
        "self_loops": (True, False),
    },
    "LINKX": {
        "hidden_channels": (32, 64, 128, 256),
        "num_layers": (1, 2, 3),
        "num_edge_layers": (1, 2),
        "num_node_layers": (1, 2),
    },
}


def search_space(model: str, kind: str, fixed: Mapping[str, Any]) -> Space:
    """Return the values that a search may choose for each setting.

    Args:
        model: name of the model.
        kind: ``"paper"`` is the form and the grid of the paper, ``"best"`` searches all forms.
        fixed: settings that the user has decided.
    """
    scalings = ("auto", "row", "raw", "standard")
    grids = {"features": scalings, **_STRUCTURES.get(model, {}), **NUMERIC}
    if kind == "paper" and model in ("NFGNN", "PolyGNN"):
        grids = PAPER_GRID
    config = RunConfig.resolve(model, {}, None, None, "none")
    names = set(config.settings())
    conv = config.build(2, 2, 2).filter
    if conv is None or not any(p.requires_grad for p in conv.parameters()):
        names -= {"filter_lr", "filter_weight_decay"}
    if find_model(model).model.own_loss:
        names -= {"label_smoothing"}
    return {name: grids[name] for name in grids if name in names and name not in fixed}
