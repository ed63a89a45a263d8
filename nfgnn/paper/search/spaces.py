"""What ``nfgnn tune`` may choose from: a grid of values per setting.

The paper's own grid for NFGNN is :data:`PAPER_GRID` (with dropout 0.5, K = 10, rank 1). The wide
grids go beyond it. Settings in :data:`NUMERIC` do not change the shape of the model, so runs that
differ in nothing else can be trained as one computation.
"""

from collections.abc import Mapping
from typing import Any

from nfgnn.nn import GATES, LINK_CHOICES, find_model
from nfgnn.spectral import BASES, RESPONSES
from nfgnn.training import RunConfig

Space = dict[str, tuple[Any, ...]]

PAPER_GRID: Space = {
    "hidden_channels": (16, 32, 64),
    "lr": (0.01, 0.05),
    "filter_lr": (0.001, 0.005, 0.01),
    "weight_decay": (0.0001, 0.0005, 0.001),
    "filter_dropout": (0.0, 0.1, 0.2, 0.5, 0.7, 0.8, 0.9),
    "alpha": (0.1, 0.2, 0.5, 0.9, 1.0),
}
"""The grid of the paper's appendix; α, of which it does not speak, from that of GPRGNN."""

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
_FILTERED = {"hidden_channels": (16, 32, 64, 128), "K": (1, 2, 3, 5, 10)}


def _structure(model: str) -> Space:
    """What shapes a model, beyond its features."""
    own = {
        "basis": tuple(BASES),
        "self_loops": (False, True),
        "init": tuple(name for name in ("ppr", *RESPONSES) if name != "random"),
        "link": LINK_CHOICES,
        **_FILTERED,
    }
    shapes: dict[str, Space] = {
        "NFGNN": {**own, "rank": (1, 3, 5), "gate": tuple(GATES)},
        "PolyGNN": own,
        "GPRGNN": _FILTERED,
        "BernNet": _FILTERED,
        "APPNP": _FILTERED,
        "ChebNet": {"hidden_channels": (16, 32, 64), "K": (1, 2, 3)},
        "FAGCN": {"hidden_channels": (16, 32, 64), "K": (1, 2, 3), "eps": (0.1, 0.3, 0.5)},
        "BMGCN": {"enhance": (0.8, 1.0, 2.0, 3.0, 4.0), "self_loop": (0.0, 1.5, 3.0)},
        "GCN": {"hidden_channels": (16, 32, 64, 128)},
        "SGC": {"K": (1, 2, 3)},
    }
    return {"features": ("row", "raw", "standard"), **shapes.get(model, {})}


def search_space(model: str, kind: str, fixed: Mapping[str, Any]) -> Space:
    """The values that a search may choose for each setting.

    Args:
        model: name of the model.
        kind: ``"paper"`` is the form and the grid of the paper, ``"best"`` searches all forms.
        fixed: settings that the user has decided.
    """
    grids = (
        PAPER_GRID
        if kind == "paper" and model in ("NFGNN", "PolyGNN")
        else {**_structure(model), **NUMERIC}
    )
    config = RunConfig.resolve(model, {}, None, None, "none")
    known = set(config.settings())
    learns_filter = any(
        n.startswith("prop.") and p.requires_grad
        for n, p in config.build(2, 2, 2).named_parameters()
    )
    if not learns_filter:
        known -= {"filter_lr", "filter_weight_decay"}
    if find_model(model).model.own_loss:
        known -= {"label_smoothing"}  # its loss is its own
    return {name: values for name, values in grids.items() if name in known and name not in fixed}
