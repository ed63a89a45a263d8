"""Node-oriented spectral filtering for graph neural networks: every node learns its own polynomial filter.

>>> from nfgnn import NodeClassifier, load_dataset, split
>>> data = split(load_dataset("texas"), protocol="full", seed=0)          # doctest: +SKIP
>>> clf = NodeClassifier("NFGNN").fit(data)                               # doctest: +SKIP
>>> clf.score(data, data.test_mask)                                       # doctest: +SKIP

Rooms, in the order data walks through them: ``datasets``, ``transforms``, ``basis``, ``propagate``, ``nn``,
``presets``, ``scale``, ``training``, ``analysis``, ``report``; ``cli`` is the command line.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nfgnn.data import load_dataset, split
    from nfgnn.nn import MLP, NFGNN, NFConv, PolyConv, PolyGNN, ScalableNFGNN
    from nfgnn.training import NodeClassifier

__version__ = "0.1.0"

# torch says this of every sparse CSR tensor; all that is used of them here is covered by the tests.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")

# Loaded when first asked for: `nfgnn --help` must not wait for torch.
_HOME = {
    "load_dataset": "data",
    "split": "data",
    "NFConv": "nn",
    "PolyConv": "nn",
    "NFGNN": "nn",
    "PolyGNN": "nn",
    "ScalableNFGNN": "nn",
    "MLP": "nn",
    "NodeClassifier": "training",
}

__all__ = [
    "MLP",
    "NFGNN",
    "NFConv",
    "NodeClassifier",
    "PolyConv",
    "PolyGNN",
    "ScalableNFGNN",
    "load_dataset",
    "split",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'nfgnn' has no attribute '{name}'")
    return getattr(import_module(f"nfgnn.{_HOME[name]}"), name)
