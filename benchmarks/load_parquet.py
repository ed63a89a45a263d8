"""Time to load a graph of a million nodes and ten million edges from Parquet.

Compares ``load_dataset`` with reading the same two files with pyarrow alone, in turns, each in a
process of its own, and reports the peak memory of both. The best of several processes counts,
because other work on the machine can only add to a time. Run:
``python benchmarks/load_parquet.py [--out benchmarks/results/load_parquet.md]``.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

GOAL = 3.0  # times the plain read


def write_graph(folder: Path, nodes: int, links: int, features: int, text_ids: bool) -> None:
    """Write a random graph: ids, a label of ten classes, float32 features; each edge once."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(nodes)
    names = pa.array([f"node-{i:07d}" for i in ids]) if text_ids else pa.array(ids)
    table = {"id": names, "label": rng.integers(0, 10, nodes)}
    table |= {f"x{i}": rng.standard_normal(nodes, dtype=np.float32) for i in range(features)}
    parquet.write_table(pa.table(table), folder / "nodes.parquet")
    ends = (names.take(pa.array(rng.integers(0, nodes, links))) for _ in range(2))
    parquet.write_table(pa.table(dict(zip(("source", "target"), ends))), folder / "edges.parquet")


def measure(what: str, folder: str) -> None:
    """Print seconds, and the peak memory beyond that of the imports, of this process."""
    import torch

    from nfgnn.data import load_dataset

    torch.set_num_threads(os.cpu_count() or 1)
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    if what == "load_dataset":
        data = load_dataset(folder)
        size = (data.num_nodes, data.edge_index.size(1) // 2)
    else:
        size = tuple(
            parquet.read_table(f"{folder}/{name}.parquet").num_rows for name in ("nodes", "edges")
        )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "seconds": seconds,
        # The rest of the time is mostly the kernel allocating memory.
        "user": after.ru_utime - before.ru_utime,
        "peak_gib": (after.ru_maxrss - before.ru_maxrss) / 2**20,
        "nodes": size[0],
        "links": size[1],
    }
    print(json.dumps(found))


def compare(folder: Path, repeats: int) -> dict[str, dict[str, float]]:
    """Measure both in turns, in the same state of the machine; the first turn fills the cache."""
    runs: dict[str, list[dict[str, float]]] = {"pyarrow": [], "load_dataset": []}
    for turn in range(repeats + 1):
        for what, results in runs.items():
            command = [sys.executable, __file__, "--measure", what, "--folder", str(folder)]
            found = json.loads(
                subprocess.run(command, check=True, capture_output=True, text=True).stdout
            )
            if turn:
                results.append(found)
    return {
        what: {key: min(run[key] for run in results) for key in results[0]}
        for what, results in runs.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--links", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.measure, args.folder)
        return
    rows = []
    for features, text_ids in [*((f, False) for f in args.features), (args.features[-1], True)]:
        with tempfile.TemporaryDirectory() as folder:
            write_graph(Path(folder), args.nodes, args.links, features, text_ids)
            size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 2**20
            rows.append(
                (
                    features,
                    "text" if text_ids else "integers",
                    size,
                    compare(Path(folder), args.repeats),
                )
            )
    report = "\n".join(_lines(args, rows))
    print(report)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(report + "\n", encoding="utf-8")


def _lines(
    args: argparse.Namespace, rows: list[tuple[int, str, float, dict[str, dict[str, float]]]]
) -> list[str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    lines = [
        "# Loading a large graph from Parquet",
        "",
        f"{args.nodes:,} nodes, {args.links:,} edges, each listed once; best of {args.repeats} "
        "processes, in turns.",
        f"Machine: {os.cpu_count()} cores, {memory:.0f} GiB, CPU; "
        f"Python {platform.python_version()}, pyarrow {pa.__version__}.",
        "Peak memory is beyond that of the imported libraries.",
        "",
        "Command: `python benchmarks/load_parquet.py --out benchmarks/results/load_parquet.md`",
        "",
        "| features | ids | files | pyarrow alone | `load_dataset` | ratio "
        "| ratio of user CPU time | peak memory: pyarrow | `load_dataset` |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for features, ids, size, found in rows:
        plain, ours = found["pyarrow"], found["load_dataset"]
        lines.append(
            f"| {features} | {ids} | {size:.0f} MiB "
            f"| {plain['seconds']:.2f} s | {ours['seconds']:.2f} s "
            f"| {ours['seconds'] / plain['seconds']:.1f} | {ours['user'] / plain['user']:.1f} "
            f"| {plain['peak_gib']:.2f} GiB | {ours['peak_gib']:.2f} GiB |"
        )
    worst = max(
        found["load_dataset"]["seconds"] / found["pyarrow"]["seconds"] for *_, found in rows
    )
    verdict = "reached" if worst <= GOAL else "not reached"
    return [
        *lines,
        "",
        f"The goal, at most {GOAL:g} times the plain read, is {verdict} (worst row: {worst:.1f}).",
    ]


if __name__ == "__main__":
    main()
