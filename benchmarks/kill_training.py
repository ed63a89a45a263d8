"""Kill a training on a store at random moments, resume it, and compare the files byte by byte.

    python benchmarks/kill_training.py --kills 10

Computes a store of the generated graph, trains on it once without and once with interruptions by
SIGKILL, and compares weights, learning curves and coefficients. Writes
``benchmarks/results/kill_training.md``.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RESULT = Path(__file__).parent / "results" / "kill_training.md"
FILES = ("weights.safetensors", "history.csv", "coefficients.npy")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = interrupted(Path(folder), arguments.kills, random.Random(arguments.seed))
    RESULT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def interrupted(folder: Path, kills: int, rng: random.Random) -> list[str]:
    nfgnn = [sys.executable, "-m", "nfgnn"]
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*nfgnn, "precompute", "mixed", "--out", "store", "--K", "5"],
        **quiet,
        env=environment,
        check=True,
    )
    train = [
        *nfgnn,
        "train",
        "store",
        "--runs",
        "3",
        "--set",
        "epochs=200",
        "--set",
        "batch_size=64",
        "--resume",
    ]
    began = time.perf_counter()
    subprocess.run([*train, "--out", "whole"], **quiet, env=environment, check=True)
    whole = time.perf_counter() - began
    lines = [
        "# Killed and resumed",
        "",
        f"`python benchmarks/kill_training.py --kills {kills}`: three runs on a store of the "
        f"generated graph, {whole:.0f} s without interruption; one thread.",
        "",
        "| kill | after s | finished runs | checkpoint of |",
        "|---:|---:|---:|---|",
    ]
    for kill in range(kills):
        # A command needs some seconds to start; from then on any moment is as good as another.
        process = subprocess.Popen([*train, "--out", "run"], **quiet, env=environment)
        wait = 3 + rng.random() * (3 + whole / kills)
        time.sleep(wait)
        if process.poll() is not None:
            lines.append(f"| {kill + 1} | {wait:.1f} | the command had ended before | |")
            break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        partial = folder / ".run.partial"
        done = sorted(p.name for p in partial.glob("seed-?"))
        open_runs = sorted(p.stem for p in partial.glob("*.checkpoint"))
        lines.append(f"| {kill + 1} | {wait:.1f} | {len(done)} | {', '.join(open_runs) or '–'} |")
    subprocess.run([*train, "--out", "run"], **quiet, env=environment, check=True)
    compared = [(f"seed-{seed}", name) for seed in range(3) for name in FILES]
    same = [
        (folder / "run" / s / f).read_bytes() == (folder / "whole" / s / f).read_bytes()
        for s, f in compared
    ]
    return [*lines, "", f"Afterwards {sum(same)} of {len(same)} files are the same, byte for byte."]


if __name__ == "__main__":
    main()
