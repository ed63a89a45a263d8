"""The memory budget: parsed, divided into blocks, and kept by the process."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet
from scipy import sparse

from nfgnn.errors import UserError
from nfgnn.store import parse_memory, resident_bytes
from nfgnn.store.memory_budget import MemoryBudget, remaining_memory

PARTS = ("data", "indices", "indptr", "shape")
PEAK = """
import re, sys
from nfgnn.cli import main
try:
    main()
except SystemExit:
    pass
status = open("/proc/self/status").read()
print(int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) * 1024, file=sys.stderr)
"""
"""Runs a command and prints the peak of its memory. getrusage would include the parent's memory."""


@pytest.mark.parametrize(
    ("text", "expected"), [("4GB", 4e9), ("512MiB", 2**29), (" 1.5 gb", 1.5e9), ("1000", 1000)]
)
def test_sizes_are_parsed(text: str, expected: float) -> None:
    assert parse_memory(text) == expected


@pytest.mark.parametrize("text", ["lots", "0GB", "-1GB", "1..5GB", "4PB", ""])
def test_invalid_sizes_are_rejected(text: str) -> None:
    with pytest.raises(UserError, match="is not a size: use a value such as 4GB"):
        parse_memory(text)


@pytest.mark.parametrize("limit", [10**9, 3 * 10**9, 10**10])
def test_the_widest_block_of_every_cut_fits(limit: int) -> None:
    budget = MemoryBudget(limit, 3 * 10**8, 10**6, 10**8, 10**5)
    widths = budget.max_widths()
    assert "streamed" in widths
    assert ("resident" in widths) == (limit > 10**9)
    for cut, width in widths.items():
        assert budget.peak(cut, width) <= 0.94 * limit < budget.peak(cut, width + 1)


def test_the_memory_of_a_gpu_replaces_that_of_the_process() -> None:
    budget = MemoryBudget(10**9, 0, 10**6, 10**7, 10**5, device_limit=10**9)
    assert budget.max_widths() == {"device": (940_000_000 - 456_000_000) // (20 * 10**6)}


def test_a_stage_may_use_what_the_process_does_not_hold() -> None:
    held = resident_bytes()
    assert held > 10**6
    assert remaining_memory(100 * held) == pytest.approx(99 * held, rel=0.05)
    assert remaining_memory(held) == held // 4


@pytest.mark.parametrize("layout", ["tables", "tensors", "arrays"])
def test_the_process_keeps_to_the_budget(layout: str, tmp_path: Path) -> None:
    """The peak of the process stays within the budget, with edges that are sorted on disk."""
    rng = np.random.default_rng(0)
    n = 100_000
    x = rng.random((n, 16), np.float32)
    y = np.arange(n) % 4
    edges = rng.integers(0, n, (2, 2_000_000))
    graph = tmp_path / "graph"
    if layout == "tables":
        graph.mkdir()
        nodes = {"id": np.arange(n), "label": y}
        for i in range(16):
            nodes[f"x{i}"] = x[:, i]
        parquet.write_table(pa.table(nodes), graph / "nodes.parquet", row_group_size=2**14)
        table = pa.table({"source": edges[0], "target": edges[1]})
        parquet.write_table(table, graph / "edges.parquet")
    elif layout == "arrays":
        # Weighted edges and sparse features.
        graph = graph.with_suffix(".npz")
        weight = rng.random(edges.shape[1])
        matrix = sparse.random_array((n, 64), density=0.08, format="csr", rng=rng)
        parts = {f"node_features_{part}": getattr(matrix, part) for part in PARTS}
        np.savez(graph, edges=edges.T, edge_weights=weight, node_labels=y, **parts)
    else:
        graph = graph.with_suffix(".pt")
        content = {"x": x, "edge_index": edges, "y": y}
        torch.save({key: torch.from_numpy(value) for key, value in content.items()}, graph)
    options = ["--out", str(tmp_path / "s"), "--K", "2", "--memory", "800MB", "--json"]
    command = [sys.executable, "-c", PEAK, "precompute", str(graph), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout, done.stderr
    summary = json.loads(done.stdout)
    assert summary["rows"] == n
    assert "sorting edges" in summary["stages"]
    assert int(done.stderr.split()[-1]) <= 800e6
