"""Measure the latency of predictions for new nodes on a large store, and their error.

Writes a graph with power-law degrees and classes to Parquet, in bounded memory. Precomputes a
store for serving, trains a model on it, and attaches new nodes one by one to the open store. Some
rows are compared with those of the whole extended graph, which are computed from all edges.

Run: ``python benchmarks/serving.py --scratch FOLDER [--nodes 10000000] [--out FILE.md]``. A second
run reuses the files of the first.
"""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

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
