"""Run `nfgnn precompute` on a fraction of ogbn-papers100M's size, and compare it with its plan.

The graph is generated (``nfgnn.data.PowerLawGraph``). Nodes, edges and labelled nodes are the
fraction of those of papers100M; 128 features, as there. The command runs in a process of its own.
Its memory and files are observed from outside every 0.1 s; its traffic is that of its system calls
(``rchar`` and ``wchar`` in ``/proc/PID/io``), whether a cache answers them or the disk.

Run: ``python benchmarks/papers100m_precompute.py --fraction 0.05 --scratch FOLDER``. To restrict it
to two cores, start it with ``taskset -c 0,1``.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch

from nfgnn.data import PowerLawGraph

NODES = 111_059_956
EDGES = 1_615_685_872
LABELLED = 1_546_782


def disk_bytes(folder: Path) -> int:
    """Return the disk space of the files below a folder."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += 512 * path.stat().st_blocks
        except FileNotFoundError:  # renamed meanwhile
            continue
    return total


def observed(command: list[str], store: Path) -> tuple[dict[str, object], dict[str, float]]:
    """Run a command that prints a JSON object; return the object and what was measured."""
    start = time.perf_counter()
    measured: dict[str, float] = {"memory": 0, "disk": 0}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    counters = Path(f"/proc/{process.pid}")
    while process.poll() is None:
        try:
            resident = int((counters / "statm").read_text().split()[1])
            traffic = (counters / "io").read_text().split()
        except OSError:
            break
        measured["memory"] = max(measured["memory"], resident * os.sysconf("SC_PAGE_SIZE"))
        measured["disk"] = max(measured["disk"], disk_bytes(store))
        if traffic:
            measured["read"] = int(traffic[1])
            measured["written"] = int(traffic[3])
        time.sleep(0.1)
    assert process.stdout is not None
    answer = json.loads(process.stdout.read())
    process.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    measured["processor"] = used.ru_utime + used.ru_stime
    measured["seconds"] = time.perf_counter() - start
    return answer, measured


def report(args: argparse.Namespace, answer: dict, measured: dict[str, float]) -> list[str]:
    plan = answer["plan"]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    lines = [
        f"{plan['num_nodes']:,} nodes, at most {plan['num_entries']:,} entries, "
        f"{plan['num_features']} features, {plan['num_rows']:,} stored rows, K = {plan['K']}: the "
        f"size of papers100M times {args.fraction:g}. Cut: {plan['cut']}, {plan['blocks']} blocks "
        f"of {plan['width']} columns, {plan['products']} products. "
        f"{len(os.sched_getaffinity(0))} cores; load averages at the end: {load}.",
        "",
        f"Command: `python benchmarks/papers100m_precompute.py {' '.join(sys.argv[1:])}`",
        "",
        "| | planned | measured | measured / planned |",
        "|---|---:|---:|---:|",
    ]
    rows = {
        "time: s": (plan["seconds"], measured["seconds"], 1.0),
        "read: GB": (plan["read_bytes"], measured["read"], 1e9),
        "written: GB": (plan["written_bytes"], measured["written"], 1e9),
        "peak memory: GB": (plan["memory_bytes"], measured["memory"], 1e9),
        "peak disk space: GB": (plan["disk_bytes"], measured["disk"], 1e9),
    }
    for name, (planned, found, unit) in rows.items():
        lines.append(
            f"| {name} | {planned / unit:.2f} | {found / unit:.2f} | {found / planned:.2f} |"
        )
    lines.append(f"| processor time: s | | {measured['processor']:.0f} | |")
    for stage, seconds in answer["stages"].items():
        lines.append(f"| stage, {stage}: s | | {seconds:.1f} | |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fraction", type=float, required=True)
    parser.add_argument("--K", type=int, default=5)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    graph = PowerLawGraph(
        round(NODES * args.fraction),
        round(EDGES * args.fraction),
        num_labelled=round(LABELLED * args.fraction),
    )
    start = time.perf_counter()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    graph.write(args.scratch / "graph", device)
    print(f"graph written in {time.perf_counter() - start:.0f} s", flush=True)
    store = args.scratch / "store"
    program = [sys.executable, "-m", "nfgnn", "precompute", str(args.scratch / "graph")]
    options = ["--out", str(store), "--K", str(args.K), "--memory", args.memory]
    answer, measured = observed([*program, *options, "--device", "cpu", "--json"], store)
    text = "\n".join(report(args, answer, measured))
    print(text)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
