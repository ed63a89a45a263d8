"""Train ScalableNFGNN on a large store: speed, waiting time, accuracy, peak memory.

    python benchmarks/train_store.py STORE --set epochs=5 --threads 2

The store is one of ``benchmarks/precompute_large.py``. Writes
``benchmarks/results/train_store.md``. Rows are read and trained on as by ``nfgnn train STORE``;
the run folder is deleted.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from nfgnn.store import Store

RESULT = Path(__file__).parent / "results" / "train_store.md"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--protocol", default="random")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    store = Store.open(arguments.store)
    options = [word for setting in arguments.set for word in ("--set", setting)]
    protocol = ["--protocol", arguments.protocol, "--runs", "1"]
    command = ["train", str(arguments.store.resolve()), *protocol, *options]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "nfgnn", *command, "--out", f"{folder}/run", "--json"],
            env={**os.environ, "OMP_NUM_THREADS": str(arguments.threads)},
            stdout=subprocess.PIPE,
            check=True,
        )
        metrics = json.loads(Path(folder, "run", "seed-0", "metrics.json").read_text())
    summary, manifest = json.loads(done.stdout), store.manifest
    counts = store.y[store.y >= 0].bincount()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    row_bytes = store.terms[0].nbytes
    words = " ".join(
        ["python benchmarks/train_store.py STORE", *options, f"--threads {arguments.threads}"]
    )
    seconds = metrics["seconds"] / metrics["epochs"]
    rows = {
        "store": f"{manifest.num_rows:,} rows of {manifest.num_nodes:,} nodes, K = {manifest.K}, "
        f"{manifest.num_features} features, {manifest.dtype}: "
        f"{row_bytes * manifest.num_rows / 1e9:.2f} GB",
        "machine": machine(arguments.threads),
        "epochs": f"{metrics['epochs']}, {seconds:.1f} s each, validation included",
        "training rows per second": f"{metrics['rows_per_second']:,.0f} "
        f"({metrics['rows_per_second'] * row_bytes / 1e6:,.0f} MB/s)",
        "time waited for rows": f"{100 * metrics['waited']:.1f} %",
        "test accuracy": f"{100 * summary['test_accuracy']['mean']:.2f} %",
        "chance (largest class)": f"{100 * float(counts.max() / counts.sum()):.2f} %",
        "peak resident memory": f"{peak / 1e9:.2f} GB, mapped pages of the store included",
        "settings": ", ".join(f"{key} {value}" for key, value in summary["config"].items()),
    }
    lines = ["# Training on a large store", "", f"`{words}`", "", "| | |", "|---|---|"]
    RESULT.write_text(
        "\n".join([*lines, *(f"| {key} | {value} |" for key, value in rows.items())]) + "\n"
    )
    print(RESULT.read_text())


def machine(threads: int) -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    processor = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return f"{threads} thread{'s' if threads > 1 else ''} of an {processor}, {os.cpu_count()} cores"


if __name__ == "__main__":
    main()
