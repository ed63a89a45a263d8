"""Small stores for tests of training on rows."""

from pathlib import Path

import torch
from torch_geometric.data import Data

from nfgnn.data import FeatureScaling, load_dataset
from nfgnn.spectral import polynomial_terms, resolve_basis, scaled_laplacian
from nfgnn.store import Store, write_store

K = 3


def graph(num_nodes: int = 240) -> Data:
    return load_dataset("mixed", num_nodes=num_nodes)


def small_store(path: Path, data: Data, **about: object) -> Store:
    """The terms of a graph, as ``nfgnn precompute`` would store them."""
    scaling = FeatureScaling.fit(data.x)
    operator = scaled_laplacian(data.edge_index, None, data.num_nodes)
    with torch.no_grad():
        terms = polynomial_terms(
            scaling.apply(data.x), operator, resolve_basis("chebyshev"), K
        ).transpose(0, 1)
    about = {"dataset": "mixed", "source": "mixed", "class_names": data.class_names, **about}
    return write_store(path, terms.contiguous(), data.y, scaling=scaling, **about)
