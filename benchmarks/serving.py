"""Measure the latency of predictions for new nodes on a large store, and their error.

Writes a graph with power-law degrees and classes to Parquet, in bounded memory. Precomputes a
store for serving and predicts new nodes one by one with the open store and a model whose weights
are random, which does not change the time. The rows and logits of the first nodes are compared with
those of the whole extended graph, which are computed from all edges and features in float64.

Run: ``python benchmarks/serving.py --scratch FOLDER [--nodes 10000000] [--out FILE.md]``. A second
run reuses the files of the first.
"""

import argparse
import math
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
from nfgnn.store import NewNodes, Store, StoredGraph

CLASSES = 10
BLOCK = 2**20
COMPARED_AT_ONCE = 16
"""Nodes whose rows are recomputed in one pass, which takes five vectors each."""


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


def recomputed_rows(store: Store, x: np.ndarray, nodes: list[Data]) -> np.ndarray:
    """Return the rows of new nodes, each of which is added to the graph alone.

    The polynomials are applied to the indicators of the nodes, which takes all edges of the
    extended graphs but one pass for all nodes. As the operator is symmetric, the products with all
    features are the rows.

    Args:
        store: the store.
        x: scaled features of the new nodes.
        nodes: the new nodes.

    Returns:
        Rows in float64, ``[nodes, K + 1, features]``.
    """
    graph = store.graph
    manifest = store.manifest
    n = graph.num_nodes
    features = np.ascontiguousarray(store.terms[:, 0])
    attached = [node.edge_index[0].numpy() for node in nodes]
    scale = np.asarray(graph.scale)[:, None]
    changed = [(graph.degree(ends) + 1) ** -0.5 for ends in attached]
    new_scale = np.array([len(ends) ** -0.5 for ends in attached])

    def product(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Apply the operators, one per column, to vectors on the existing and the new nodes."""
        scaled = scale * old
        for i, ends in enumerate(attached):
            scaled[ends, i] = changed[i] * old[ends, i]
        found = np.empty_like(old)
        for first in range(0, n, BLOCK):
            last = min(first + BLOCK, n)
            found[first:last] = adjacency_rows(graph, first, last) @ scaled
        on_new = new_scale * [scaled[ends, i].sum() for i, ends in enumerate(attached)]
        added = new * new_scale
        rows = [changed[i] * (found[ends, i] + added[i]) for i, ends in enumerate(attached)]
        found *= scale
        for i, ends in enumerate(attached):
            found[ends, i] = rows[i]
        return found, on_new

    old = np.zeros((n, len(nodes)))
    new = np.ones(len(nodes))
    before = np.zeros_like(old), np.zeros_like(new)
    terms = [new[:, None] * x]
    table = recurrence_table(resolve_basis(manifest.basis), manifest.K, manifest.lambda_max)
    for a, b, c in table:
        old_product, new_product = product(old, new)
        old_product *= a
        old_product += b * old
        before[0][:] *= c
        old_product += before[0]
        following = old_product, a * new_product + b * new + c * before[1]
        before = old, new
        old, new = following
        terms.append(row_product(old, features) + new[:, None] * x)
    return np.stack(terms, 1)


def adjacency_rows(graph: StoredGraph, first: int, last: int) -> sparse.csr_array:
    """Return some rows of the adjacency matrix."""
    entries = slice(graph.indptr[first], graph.indptr[last])
    indices = graph.indices[entries]
    starts = graph.indptr[first : last + 1] - graph.indptr[first]
    return sparse.csr_array(
        (np.ones(len(indices)), indices, starts), (last - first, graph.num_nodes)
    )


def row_product(vectors: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Return the products of the columns of both arrays in float64."""
    found = np.zeros((vectors.shape[1], features.shape[1]))
    for first in range(0, len(vectors), BLOCK):
        block = slice(first, first + BLOCK)
        found += vectors[block].T @ features[block].astype(np.float64)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no request after")
    parser.add_argument("--compared", type=int, default=32)
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
    end = time.perf_counter() + args.seconds
    for node in nodes:
        start = time.perf_counter()
        if start > end:
            break
        start_busy = time.thread_time()
        predictor.predict_proba(node)
        busy.append(1000 * (time.thread_time() - start_busy))
        wall.append(1000 * (time.perf_counter() - start))
    rows = reference_rows(args.scratch, predictor, nodes[: args.compared])
    row_errors = []
    logit_errors = []
    for node, whole in zip(nodes, rows):
        new = NewNodes(predictor.scaling.apply(node.x), node.edge_index)
        found = predictor.store.attach(new)
        row_errors.append(float((found[0] - whole).abs().max()))
        with torch.no_grad():
            logits = predictor.model.forward_rows(torch.stack([found[0], whole.float()]))
        logit_errors.append(float((logits[0] - logits[1]).abs().max()))
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
        f"| new nodes, one per request | {len(wall):,} |",
        f"| wall time p50, p99 | {quantiles(wall)} |",
        f"| CPU time p50, p99 | {quantiles(busy)} |",
        f"| largest error of a term, {args.compared} nodes | {max(row_errors):.1e} |",
        f"| largest error of a logit, {args.compared} nodes | {max(logit_errors):.1e} |",
        f"| largest absolute value of a term, {args.compared} nodes | {rows.abs().max():.2f} |",
        "",
        "Every node is added to the graph alone. Errors are differences from the whole extended",
        "graph, computed again from all edges and features in float64, for the first nodes.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.out is not None:
        args.out.write_text(text)


def reference_rows(scratch: Path, predictor: StorePredictor, nodes: list[Data]) -> Tensor:
    """Return :func:`recomputed_rows`, from a file if an earlier run has written it."""
    path = scratch / f"reference-{predictor.store.manifest.num_nodes}-{len(nodes)}.npy"
    if not path.is_file():
        x = predictor.scaling.apply(torch.cat([node.x for node in nodes])).double().numpy()
        rows = []
        for first in range(0, len(nodes), COMPARED_AT_ONCE):
            group = slice(first, first + COMPARED_AT_ONCE)
            rows.append(recomputed_rows(predictor.store, x[group], nodes[group]))
        np.save(path, np.concatenate(rows))
    return torch.from_numpy(np.load(path))


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
