"""Time and memory of ``nfgnn analyze`` on a generated graph of 1 million nodes, 10 million edges.

``python benchmarks/analyze_large.py`` writes the graph to a temporary folder as a ``.pt`` file,
runs the command in a process of its own and reads the peak resident memory of that process from the
operating system. The graph has a power-law tail and a hub with about 20,000 edges, ten classes, and
two local patterns: half of the nodes prefer their own class.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def make_graph(path: Path, nodes: int, edges: int, hub: int, seed: int = 0) -> None:
    """Write a graph of Chung and Lu's model; half of its nodes prefer their own class."""
    import torch

    rng = np.random.default_rng(seed)
    y = np.arange(nodes) % 10
    weight = (np.arange(nodes) + 50.0) ** -0.45
    bounds = np.cumsum(weight / weight.sum())
    source, target = (
        np.searchsorted(bounds, rng.random(int(1.07 * edges))).clip(0, nodes - 1) for _ in range(2)
    )
    prefers = (source // 10 % 2 == 0) & (rng.random(len(source)) < 0.8)
    target = np.where(prefers, target // 10 * 10 + y[source], target).clip(0, nodes - 1)
    spokes = rng.choice(nodes - 1, hub, replace=False) + 1
    sources = np.concatenate([source, np.zeros(hub, int)])
    targets = np.concatenate([target, spokes])
    ends = np.stack([sources, targets])
    key = np.unique(ends.min(0) * nodes + ends.max(0))
    key = key[key // nodes != key % nodes]
    key = np.sort(rng.permutation(key)[:edges])
    graph = {
        "x": torch.from_numpy(rng.standard_normal((nodes, 16), dtype=np.float32)),
        "edge_index": torch.from_numpy(np.stack([key // nodes, key % nodes])),
        "y": torch.from_numpy(y),
    }
    torch.save(graph, path)


def peak_memory(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the seconds and the peak resident gigabytes of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"the command failed: {' '.join(command)}")
    return time.perf_counter() - start, usage.ru_maxrss * 1024 / 1e9


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--hub", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_graph(folder / "large.pt", arguments.nodes, arguments.edges, arguments.hub)
        seconds, gigabytes = peak_memory(
            [sys.executable, "-m", "nfgnn", "analyze", "large.pt"], folder
        )
        card = json.loads((folder / "analysis" / "large" / "analysis.json").read_text())
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    command = " ".join(["python benchmarks/analyze_large.py", *sys.argv[1:]])
    result = {
        "command": f"OMP_NUM_THREADS={threads} {command}",
        "machine": f"{processor()}, {os.cpu_count()} cores, {threads} thread(s) of torch",
        "nodes": card["nodes"],
        "edges": card["edges"],
        "largest_degree": card["degree"]["largest"],
        "seconds": round(seconds, 1),
        "peak_resident_GB": round(gigabytes, 2),
        "words": card["words"]["summary"],
        "spread": card["spread"],
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "analyze_large.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
