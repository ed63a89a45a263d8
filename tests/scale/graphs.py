"""Small graphs for the tests of this room, and what their stores must hold."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.basis import resolve_basis
from nfgnn.propagate import polynomial_terms, scaled_laplacian
from nfgnn.scale import Store


def small_graph(n: int = 60, features: int = 7, seed: int = 0, weighted: bool = False) -> Data:
    """A random graph with a hub and an isolated node; a third of the nodes has no label."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < 0.08, 1)
    upper[2, 3:] = True
    upper[0], upper[:, 0] = False, False
    weight = np.where(upper, rng.random((n, n)) + 0.1, 0).astype(np.float32)
    both = weight + weight.T
    source, target = np.nonzero(both)
    data = Data(
        x=torch.from_numpy(rng.standard_normal((n, features)).astype(np.float32)),
        edge_index=torch.from_numpy(np.stack([source, target])),
        y=torch.from_numpy(np.where(rng.random(n) < 0.33, -1, rng.integers(0, 3, n))),
    )
    if weighted:
        data.edge_weight = torch.from_numpy(both[source, target])
    data.train_mask = (data.y >= 0) & (torch.arange(n) % 2 == 0)
    data.val_mask = data.test_mask = (data.y >= 0) & (torch.arange(n) % 2 == 1)
    data.class_names, data.num_classes, data.name = ["a", "b", "c"], 3, "small"
    return data


def terms_in_memory(data: Data, store: Store) -> Tensor:
    """The rows of the store as the in-memory engine makes them from the same features."""
    m = store.manifest
    operator = scaled_laplacian(data.edge_index, data.get("edge_weight"), data.num_nodes, m.self_loops, m.lambda_max)
    x = store.scaling.apply(data.x).to_dense().contiguous()
    return polynomial_terms(x, operator, resolve_basis(m.basis), m.K).transpose(0, 1)[store.nodes]


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a store and its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
