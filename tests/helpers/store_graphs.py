"""Small graphs for tests of stores, and the terms that their stores must hold."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.spectral import polynomial_terms, resolve_basis, scaled_laplacian
from nfgnn.store import MemorySource, Plan, Settings, Speed, Store, make_plan


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


def planned(source: MemorySource, out: Path, settings: Settings, **cut: object) -> Plan:
    """A plan without measuring the machine, cut as the test says."""
    n, entries = source.num_nodes, source.num_entries + source.num_nodes
    rows = n if settings.rows == "all" else int((source.y >= 0).sum())
    speed = Speed(1e-9, 1e-9, 1e-8, 1e-7, 1e-9)
    made = make_plan(
        n, entries, source.num_features, rows, settings, base=10**8, speed=speed, out=out
    )
    return replace(made, **cut)  # type: ignore[arg-type]


def terms_in_memory(data: Data, store: Store) -> Tensor:
    """The rows of the store as the in-memory engine makes them from the same features."""
    m = store.manifest
    operator = scaled_laplacian(
        data.edge_index, data.get("edge_weight"), data.num_nodes, m.self_loops, m.lambda_max
    )
    x = store.scaling.apply(data.x).to_dense().contiguous()
    return polynomial_terms(x, operator, resolve_basis(m.basis), m.K).transpose(0, 1)[store.nodes]


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a store and its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
