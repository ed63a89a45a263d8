"""Measure the latency of predictions for new nodes on a large store, and their error.

Writes a graph with power-law degrees and classes to Parquet, in bounded memory. Precomputes a
store for serving and predicts new nodes one by one with the open store and a model whose weights
are random, which does not change the time. Some rows and probabilities are compared with those of
the whole extended graph, which are computed from all edges.

Run: ``python benchmarks/serving.py --scratch FOLDER [--nodes 10000000] [--out FILE.md]``. A second
run reuses the files of the first.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from nfgnn import NodeClassifier, split
from nfgnn.serving import StorePredictor
from nfgnn.spectral import recurrence_table, resolve_basis
from nfgnn.store import NewNodes, Store

CLASSES = 10
BLOCK = 2**20


def write_graph(folder: Path, nodes: int, edges: int, features: int) -> None:
    """Write ``nodes.parquet`` and ``edges.parquet``; node i belongs to class i mod 10."""
    if (folder / "done").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    means = class_means(features)
    names = [f"x{i}" for i in range(features)]
    schema = pa.schema(
        [("id", pa.int64()), ("label", pa.int64()), *((name, pa.float32()) for name in names)]
    )
    options = {"compression": "none", "use_dictionary": False}
    with parquet.ParquetWriter(folder / "nodes.parquet", schema, **options) as writer:
        for first in range(0, nodes, BLOCK):
            ids = np.arange(first, min(first + BLOCK, nodes))
            x = means[ids % CLASSES] + rng.standard_normal((len(ids), features), dtype=np.float32)
            label = np.where(rng.random(len(ids)) < 0.01, ids % CLASSES, -1)
            writer.write_table(pa.table([ids, label, *x.T], schema=schema))
    schema = pa.schema([("source", pa.int32()), ("target", pa.int32())])
    with parquet.ParquetWriter(folder / "edges.parquet", schema, **options) as writer:
        for first in range(0, edges, BLOCK):
            count = min(BLOCK, edges - first)
            source = rng.integers(0, nodes, count)
            target = targets(source, nodes, rng)
            table = pa.table([source.astype(np.int32), target.astype(np.int32)], schema=schema)
            writer.write_table(table)
    (folder / "done").touch()


def class_means(features: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    means: np.ndarray = 0.35 * rng.standard_normal((CLASSES, features), dtype=np.float32)
    return means


def targets(source: np.ndarray, nodes: int, rng: np.random.Generator) -> np.ndarray:
    """Draw neighbours: the expected degree falls with the number of the node as a power law."""
    drawn = (nodes * rng.random(len(source)) ** 3).astype(np.int64)
    alike = drawn - drawn % CLASSES + source % CLASSES
    return np.where(rng.random(len(source)) < 0.7, np.minimum(alike, nodes - 1), drawn)


def nfgnn(*arguments: str) -> float:
    """Run a command and return its seconds."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "nfgnn", *arguments], check=True)
    return time.perf_counter() - start


def new_node(node: int, nodes: int, features: int, rng: np.random.Generator) -> Data:
    """Return a new node of class ``node`` mod 10 with one to ten neighbours."""
    source = np.full(rng.integers(1, 11), node)
    neighbours = np.unique(targets(source, nodes, rng))
    x = class_means(features)[node % CLASSES] + rng.standard_normal(features, dtype=np.float32)
    ends = np.stack([neighbours, np.full(len(neighbours), nodes)])
    return Data(x=torch.from_numpy(x[None]), edge_index=torch.from_numpy(ends))


def recomputed_rows(store: Store, new: NewNodes) -> Tensor:
    """Return the row of one new node, from all edges and features of the extended graph."""
    graph = store.graph
    n = graph.num_nodes
    m = store.manifest
    attached = new.edge_index[0].numpy()
    degree = graph.degree(np.arange(n))
    degree[attached] += 1
    scale = np.append(degree, len(attached))
    scale = np.where(scale > 0, np.maximum(scale, 1e-9) ** -0.5, 0.0).astype(np.float32)[:, None]
    ones = np.ones(len(graph.indices), dtype=np.float32)
    pattern = sparse.csr_array((ones, graph.indices, graph.indptr), shape=(n, n))

    def product(signal: np.ndarray) -> np.ndarray:
        scaled = scale * signal
        out = np.empty_like(signal)
        out[:n] = pattern @ scaled[:n]
        out[attached] += scaled[n]
        out[n] = scaled[attached].sum(0)
        return scale * out

    features = np.ascontiguousarray(store.terms[:, 0])
    current = np.concatenate([features, new.x.numpy()])
    previous = np.zeros_like(current)
    terms = [current[n]]
    for a, b, c in recurrence_table(resolve_basis(m.basis), m.K, m.lambda_max):
        following = a * product(current) + b * current + c * previous
        previous = current
        current = following
        terms.append(current[n])
    return torch.from_numpy(np.stack(terms)[None])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--compared", type=int, default=2)
    parser.add_argument("--memory", default="6GB")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    n = args.nodes
    graph = args.scratch / f"graph-{n}"
    store = args.scratch / f"store-{n}"
    write_graph(graph, n, 5 * n, args.features)
    if not store.exists():
        terms = ("--serve", "--K", "10", "--memory", args.memory, "--device", "cpu")
        nfgnn("precompute", str(graph), "--out", str(store), *terms)
    start = time.perf_counter()
    predictor = open_predictor(store)
    opened = time.perf_counter() - start
    rng = np.random.default_rng(2)
    nodes = [new_node(i, n, args.features, rng) for i in range(args.requests)]
    predictor.predict_proba(nodes[0])
    wall = []
    busy = []
    for node in nodes:
        start = time.perf_counter()
        start_busy = time.thread_time()
        predictor.predict_proba(node)
        busy.append(1000 * (time.thread_time() - start_busy))
        wall.append(1000 * (time.perf_counter() - start))
    row_errors = []
    errors = []
    for node in nodes[: args.compared]:
        new = NewNodes(predictor.scaling.apply(node.x), node.edge_index)
        whole = recomputed_rows(predictor.store, new)
        row_errors.append(float((predictor.store.attach(new) - whole).abs().max()))
        with torch.no_grad():
            expected = predictor.model.forward_rows(whole).softmax(-1)
        errors.append(float((predictor.predict_proba(node) - expected).abs().max()))
    entries = len(predictor.store.graph.indices)
    lines = [
        "# Latency of predictions for new nodes",
        "",
        f"`python benchmarks/serving.py --scratch FOLDER --nodes {n} --features {args.features} "
        f"--requests {args.requests} --compared {args.compared}`",
        "",
        f"{platform.machine()}, {os.cpu_count()} shared cores, one thread, load average "
        f"{os.getloadavg()[0]:.1f} meanwhile.",
        "",
        "| | |",
        "|---|---:|",
        f"| nodes of the graph | {n:,} |",
        f"| entries of its adjacency matrix | {entries:,} |",
        f"| features, degree K | {args.features}, {predictor.store.manifest.K} |",
        f"| largest degree | {int(np.diff(predictor.store.graph.indptr).max()):,} |",
        f"| seconds to open the store | {opened:.1f} |",
        f"| new nodes, one per request | {args.requests:,} |",
        f"| wall time p50, p99 | {quantiles(wall)} |",
        f"| CPU time p50, p99 | {quantiles(busy)} |",
        f"| largest error of a term, {args.compared} nodes | {max(row_errors):.1e} |",
        f"| largest error of a probability, {args.compared} nodes | {max(errors):.1e} |",
        "",
        "Errors are differences from the whole extended graph, computed again from all edges.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.out is not None:
        args.out.write_text(text)


def open_predictor(path: Path) -> StorePredictor:
    """Return a predictor with fresh weights."""
    store = Store.open(path)
    classifier = NodeClassifier("ScalableNFGNN", device="cpu")
    classifier.prepare_fit(split(store.labels(), "stratified", 0))
    return StorePredictor(classifier, store)


def quantiles(milliseconds: list[float]) -> str:
    p50, p99 = np.quantile(milliseconds, [0.5, 0.99])
    return f"{p50:.0f} ms, {p99:.0f} ms"


if __name__ == "__main__":
    main()
