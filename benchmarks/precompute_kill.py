"""Kill `nfgnn precompute` at random times and compare the resumed stores with a complete one.

Writes a random graph and creates a store without interruption. Then, for each of ten times, the
command is started, killed by SIGKILL, and run again to its end. All files of the two stores must be
equal, byte for byte.

Run: ``python benchmarks/precompute_kill.py [--out benchmarks/results/precompute_kill.md]``.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from precompute_large import write_graph


def command(graph: Path, store: Path, memory: str) -> list[str]:
    program = [sys.executable, "-m", "nfgnn", "precompute", str(graph)]
    options = ["--out", str(store), "--device", "cpu", "--memory", memory, "--K", "10", "--json"]
    return [*program, *options]


def start(line: list[str], store: Path) -> "subprocess.Popen[bytes]":
    """Start the command and wait until its plan is written."""
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (store / "work/plan.json").is_file():
        time.sleep(0.005)
    return process


def stage(store: Path) -> str:
    """Return the stage at which a command was killed."""
    work = store / "work"
    if (store / "manifest.json").is_file():
        return "finished, deleting work files"
    if (store / "terms.npy").is_file():
        return "assembling rows"
    if not (work / "graph/indices.npy").is_file():
        return "sort"
    if not (work / "scaling.json").is_file():
        return "features"
    return f"terms, {len(list(work.glob('block-????')))} blocks done"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=150_000)
    parser.add_argument("--moments", type=int, default=10)
    parser.add_argument("--memory", default="850MB")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rng, rows = random.Random(0), []
    with tempfile.TemporaryDirectory() as scratch:
        graph, whole = Path(scratch) / "graph", Path(scratch) / "whole"
        write_graph(graph, args.nodes, 10 * args.nodes, 32, 0.05, 0.4)
        process, seconds = start(command(graph, whole, args.memory), whole), -time.perf_counter()
        if process.wait():
            sys.exit("the command failed without being killed")
        seconds += time.perf_counter()
        expected = {path.name: path.read_bytes() for path in whole.iterdir()}
        for moment in range(args.moments):
            store = Path(scratch) / f"store-{moment}"
            process, after = (
                start(command(graph, store, args.memory), store),
                rng.random() * seconds,
            )
            try:
                process.wait(after)
                at = "finished before"
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                at = stage(store)
            subprocess.run(command(graph, store, args.memory), check=True, capture_output=True)
            same = {path.name: path.read_bytes() for path in store.iterdir()} == expected
            rows.append(f"| {after:.1f} | {at} | {'equal' if same else 'DIFFERENT'} |")
            print(rows[-1], flush=True)
            shutil.rmtree(store)
    lines = [
        "# Precompute killed at random times",
        "",
        f"{args.nodes:,} nodes, {10 * args.nodes:,} edges, 32 features, K = 10, "
        f"`--memory {args.memory}`; {seconds:.1f} s after the plan without interruption.",
        "",
        f"Command: `python benchmarks/precompute_kill.py {' '.join(sys.argv[1:])}`",
        "",
        "| seconds from the plan to the kill | stage | store after the second run |",
        "|---|---|---|",
        *rows,
    ]
    text = "\n".join(lines)
    print(text)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
