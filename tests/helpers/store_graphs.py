"""Small graphs for tests of stores, and the terms that their stores must hold."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from pyarrow import csv, parquet
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.spectral import polynomial_terms, resolve_basis, scaled_laplacian
from nfgnn.store import MemorySource, Plan, Settings, Speed, Store, make_plan, precompute


def small_graph(n: int = 60, features: int = 7, seed: int = 0, weighted: bool = False) -> Data:
    """Return a random graph with a hub and an isolated node; a third of the nodes is unlabelled."""
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


def planned(source: MemorySource, out: Path, settings: Settings, **changes: object) -> Plan:
    """Return a plan without measuring the machine, with the values that a test replaces."""
    n = source.num_nodes
    entries = source.num_entries + n
    rows = n if settings.rows == "all" else int((source.y >= 0).sum())
    speed = Speed(1e-9, 1e-9, 1e-8, 1e-7, 1e-9)
    plan = make_plan(
        n, entries, source.num_features, rows, settings, base=10**8, speed=speed, out=out
    )
    return replace(plan, **changes)


def make_store(
    data: Data,
    out: Path,
    cut: str = "resident",
    width: int = 3,
    entries: int = 40,
    part_width: int = 1024,
    **options: object,
) -> Store:
    """Precompute a graph with a given cut, in blocks of ``width`` columns."""
    source = MemorySource(data)
    settings = Settings(K=4, **options)
    changes = {"cut": cut, "width": width, "stream_entries": entries, "part_width": part_width}
    plan = planned(source, out, settings, **changes)
    return precompute(source, out, settings, chosen=plan)


def terms_in_memory(data: Data, store: Store) -> Tensor:
    """Return the rows that a store must hold, computed in memory from the same features."""
    m = store.manifest
    operator = scaled_laplacian(
        data.edge_index, data.get("edge_weight"), data.num_nodes, m.self_loops, m.lambda_max
    )
    x = store.scaling.apply(data.x).to_dense().contiguous()
    return polynomial_terms(x, operator, resolve_basis(m.basis), m.K).transpose(0, 1)[store.nodes]


def sums_like_other_widths(width: int) -> bool:
    """Whether this processor sums a product with ``width`` columns as one with a single column.

    On Intel processors, MKL adds in another order if there are 4, 8, 12, 16, 20 or 24 columns.
    """
    generator = torch.Generator().manual_seed(0)
    dense = torch.rand(40, 300, generator=generator)
    x = torch.randn(300, width, generator=generator)
    matrix = dense.to_sparse_csr()
    columns = [torch.mm(matrix, x[:, [i]]) for i in range(width)]
    return torch.equal(torch.mm(matrix, x), torch.cat(columns, dim=1))


def files_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in a folder.

    Where stores differ, pytest would take minutes to show the difference of their bytes.
    """
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def write_graph(data: Data, folder: Path) -> None:
    """Write the adjacency matrix as ``precompute`` does."""
    folder.mkdir(exist_ok=True)
    MemorySource(data).write_pattern(folder, 10**6, False, lambda stage, done, total: None)


def write_tables(folder: Path, suffix: str) -> Path:
    """Write the small graph as two tables.

    Edges are listed in one direction, some of them twice, and there are self-loops.
    """
    data = small_graph()
    rng = np.random.default_rng(0)
    folder.mkdir()
    nodes = {
        "id": np.arange(60),
        "label": [None if c < 0 else data.class_names[c] for c in data.y.tolist()],
        "split": np.where(data.train_mask, "train", np.where(data.val_mask, "val", "")),
    }
    for i in range(7):
        nodes[f"x{i}"] = data.x[:, i].numpy()
    edges = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].numpy()
    flipped = rng.random(edges.shape[1]) < 0.5
    edges = np.where(flipped, edges[::-1], edges)
    loops = np.array([[4, 5], [4, 5]])
    edges = np.concatenate([edges, edges[:, :9], loops], axis=1)
    edges = edges[:, rng.permutation(edges.shape[1])]
    write = parquet.write_table if suffix == "parquet" else csv.write_csv
    write(pa.table(nodes), folder / f"nodes.{suffix}")
    write(pa.table({"source": edges[0], "target": edges[1]}), folder / f"edges.{suffix}")
    return folder
