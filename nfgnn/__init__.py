"""Node-oriented spectral filtering for graph neural networks.

Every node learns its own polynomial filter of the graph's Laplacian.

>>> from nfgnn import NodeClassifier, load_dataset, split
>>> data = split(load_dataset("texas"), protocol="full", seed=0)          # doctest: +SKIP
>>> clf = NodeClassifier("NFGNN").fit(data)                               # doctest: +SKIP
>>> clf.score(data, data.test_mask)                                       # doctest: +SKIP

Packages, in the order in which data flows through them. A package imports only packages above it,
and only through their ``__init__``. Every package may import the modules at the top level: errors,
files, json_text, object_store, plugins, progress, npyfile, tensor_cache.

| package | in → out | may import |
|---|---|---|
| `data` | a name, file or object → a validated graph with splits and scaled features | nothing |
| `kernels` | Triton kernels, each beside an equal implementation in torch | nothing |
| `spectral` | bases, scaled Laplacian, recurrence, responses: mathematics on tensors | kernels |
| `nn` | features and edges → logits: layers, gates, models | kernels, spectral |
| `store` | a graph that exceeds memory → terms on disk, row batches | data, kernels, spectral |
| `training` | a run specification → a result | data, kernels, spectral, nn, store |
| `serving` | a run and a store → classes of new nodes, also by HTTP | data, nn, store, training |
| `analysis` | tensors → homophily, entropy, spectra, responses | spectral |
| `auto` | a graph → the best model for it | data, nn, training, analysis |
| `explain` | results → pages and figures | data, spectral, nn, store, training, analysis, auto |
| `paper` | the paper's tables, figures, searches, studies | all of these |
| `cli` | a command line → calls of the library, printed results | all of these |
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nfgnn.auto import AutoNodeClassifier
    from nfgnn.data import load_dataset, split
    from nfgnn.nn import MLP, NFGNN, NFConv, NFNet, PolyConv, PolyGNN, ScalableNFGNN
    from nfgnn.training import NodeClassifier

__version__ = "0.2.0"

# torch says this of every sparse CSR tensor; all that is used of them here is covered by the tests.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
# Torch 2.11 warns at the first sparse tensor, although readers check these invariants themselves.
warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")

# Loaded when first asked for: `nfgnn --help` must not wait for torch.
_HOME = {
    "load_dataset": "data",
    "split": "data",
    "NFConv": "nn",
    "PolyConv": "nn",
    "NFGNN": "nn",
    "NFNet": "nn",
    "PolyGNN": "nn",
    "ScalableNFGNN": "nn",
    "MLP": "nn",
    "NodeClassifier": "training",
    "AutoNodeClassifier": "auto",
}

__all__ = [
    "MLP",
    "NFGNN",
    "AutoNodeClassifier",
    "NFConv",
    "NFNet",
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
