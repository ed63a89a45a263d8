"""Precompute a graph that exceeds the memory budget, and measure memory and time from outside.

Writes a random graph with classes to Parquet in bounded memory: a node's edges lead to its own
class with a given probability, features are noisy class means, few nodes are labelled. Then runs
`nfgnn precompute` on it in a process and reports the peak of its resident memory (with children,
from /proc, every 20 ms), and the time of a sparse product next to an in-memory product of the same
size.

Run: ``python benchmarks/precompute_large.py --scratch /tmp/large [--out FILE.md]``.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

CLASSES = 10
BLOCK = 2**17


def write_graph(
    folder: Path, nodes: int, links: int, features: int, labelled: float, homophily: float
) -> None:
    """Write ``nodes.parquet`` and ``edges.parquet``; node i belongs to class i mod 10."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "done").is_file():
        return
    rng = np.random.default_rng(0)
    means = 0.35 * rng.standard_normal((CLASSES, features), dtype=np.float32)
    names = [f"x{i}" for i in range(features)]
    schema = pa.schema(
        [("id", pa.int64()), ("label", pa.int64()), *((name, pa.float32()) for name in names)]
    )
    with parquet.ParquetWriter(
        folder / "nodes.parquet", schema, compression="none", use_dictionary=False
    ) as writer:
        for first in range(0, nodes, BLOCK):
            ids = np.arange(first, min(first + BLOCK, nodes))
            x = means[ids % CLASSES] + rng.standard_normal((len(ids), features), dtype=np.float32)
            label = np.where(rng.random(len(ids)) < labelled, ids % CLASSES, -1)
            writer.write_table(pa.table([ids, label, *x.T], schema=schema))
    schema = pa.schema([("source", pa.int32()), ("target", pa.int32())])
    with parquet.ParquetWriter(
        folder / "edges.parquet", schema, compression="none", use_dictionary=False
    ) as writer:
        for first in range(0, links, 16 * BLOCK):
            count = min(16 * BLOCK, links - first)
            source = rng.integers(0, nodes, count)
            alike = rng.integers(0, nodes // CLASSES, count) * CLASSES + source % CLASSES
            target = np.where(rng.random(count) < homophily, alike, rng.integers(0, nodes, count))
            writer.write_table(
                pa.table([source.astype(np.int32), target.astype(np.int32)], schema=schema)
            )
    (folder / "done").touch()


def tree_bytes(root: int) -> int:
    """Return the resident memory of a process and its descendants."""
    parents: dict[int, list[int]] = {}
    sizes: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents.setdefault(int(stat[1]), []).append(int(entry.name))
            sizes[int(entry.name)] = int(stat[21]) * os.sysconf("SC_PAGE_SIZE")
    total, todo = 0, [root]
    while todo:
        process = todo.pop()
        total += sizes.get(process, 0)
        todo += parents.get(process, [])
    return total


def watched(command: list[str]) -> tuple[dict[str, object], int, float]:
    """Run a command that prints a JSON object; return the object, peak memory and seconds."""
    start, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while process.poll() is None:
        peak = max(peak, tree_bytes(process.pid))
        time.sleep(0.02)
    assert process.stdout is not None
    if process.returncode:
        sys.exit(process.returncode)
    return json.loads(process.stdout.read()), peak, time.perf_counter() - start


def reference(nodes: int, entries: int, width: int) -> None:
    """Print the seconds of an in-memory torch CSR product of this size: the best of three."""
    import torch

    degree = entries // nodes
    rng = np.random.default_rng(0)
    indices = torch.from_numpy(rng.integers(0, nodes, nodes * degree, dtype=np.int32))
    indptr = torch.arange(0, nodes * degree + 1, degree, dtype=torch.int32)
    matrix = torch.sparse_csr_tensor(
        indptr, indices, torch.ones(nodes * degree), (nodes, nodes), check_invariants=False
    )
    x, out, times = torch.ones(nodes, width), torch.empty(nodes, width), []
    for _ in range(3):
        start = time.perf_counter()
        torch.mm(matrix, x, out=out)
        times.append(time.perf_counter() - start)
    print(json.dumps({"seconds": min(times), "entries": nodes * degree}))


def measure(args: argparse.Namespace, nodes: int) -> dict[str, float]:
    graph, store = args.scratch / f"graph-{nodes}", args.scratch / f"store-{nodes}"
    write_graph(
        graph, nodes, nodes * args.degree // 2, args.features, args.labelled, args.homophily
    )
    program = [sys.executable, "-m", "nfgnn", "precompute", str(graph), "--out", str(store)]
    options = ["--K", str(args.K), "--memory", args.memory, "--device", "cpu", "--json"]
    found, peak, seconds = watched([*program, *options])
    plan, stages = found["plan"], found["stages"]
    entries = nodes * args.degree
    base, *_ = watched(
        [sys.executable, __file__, "--reference", str(nodes), str(entries), str(args.features)]
    )
    terms = stages["computing terms"]
    sorting = sum(s for stage, s in stages.items() if "links" in stage or "edges" in stage)
    ours = terms / plan["products"] / entries / plan["width"]
    plain = base["seconds"] / base["entries"] / args.features
    if not args.keep:
        subprocess.run(["rm", "-rf", str(graph), str(store)], check=True)
    return {
        "nodes": nodes,
        "entries": entries,
        "cut": plan["cut"],
        "blocks": plan["blocks"],
        "width": plan["width"],
        "peak": peak,
        "planned": plan["memory_bytes"],
        "seconds": seconds,
        "expected": plan["seconds"],
        "terms": terms,
        "sort": sorting,
        "ours": 1e9 * ours,
        "plain": 1e9 * plain,
        "store": plan["store_bytes"],
    }


def lines(args: argparse.Namespace, rows: list[dict[str, float]]) -> list[str]:
    import torch

    model = next(
        x.split(":")[1].strip()
        for x in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in x
    )
    head = "| nodes | entries | cut | blocks × columns | peak memory: GB | planned: GB | all: s "
    head += "| expected: s | sort: s | terms: s | ns per entry and column "
    head += "| in-memory product: ns | ratio | store: GB |"
    threads = torch.get_num_threads()
    out = [
        "# Precompute within a memory budget",
        "",
        f"`nfgnn precompute` with `--memory {args.memory} --K {args.K}`: {args.features} features, "
        f"mean degree {args.degree}, {100 * args.labelled:g} % of the nodes labelled and stored. "
        "Peak: resident memory of the process and its children, read from outside every 20 ms. "
        "*Terms* is the whole stage, including reading the graph and writing the stored rows; the "
        "next column is this time divided by products, entries and columns. The in-memory product "
        "is `torch.mm` of a CSR matrix of the same size at full width, the best of three.",
        "",
        f"Machine: {os.cpu_count()} cores ({threads} threads) of {model}, shared; "
        f"torch {torch.__version__}, Python {platform.python_version()}.",
        "",
        f"Command: `python benchmarks/precompute_large.py {' '.join(sys.argv[1:])}`",
        "",
        head,
        "|" + "---|" * (head.count("|") - 1),
    ]
    for r in rows:
        cells = [f"{r['nodes']:,}", f"{r['entries']:,}", r["cut"], f"{r['blocks']} × {r['width']}"]
        cells += [f"{r[key] / 1e9:.2f}" for key in ("peak", "planned")]
        cells += [f"{r[key]:.0f}" for key in ("seconds", "expected", "sort", "terms")]
        cells += [
            f"{v:.2f}" for v in (r["ours"], r["plain"], r["ours"] / r["plain"], r["store"] / 1e9)
        ]
        out.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--degree", type=int, default=20)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--labelled", type=float, default=0.05)
    parser.add_argument("--homophily", type=float, default=0.4)
    parser.add_argument("--K", type=int, default=10)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--scratch", type=Path, required=False, default=Path("large"))
    parser.add_argument(
        "--keep", action="store_true", help="leave graph and store in the scratch folder"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--reference", type=int, nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.reference:
        reference(*args.reference)
        return
    text = "\n".join(lines(args, [measure(args, nodes) for nodes in args.nodes]))
    print(text)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
