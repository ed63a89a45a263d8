"""Kill `nfgnn auto` at random moments, resume it, and compare with a search that was not killed.

    python benchmarks/auto_kills.py --kills 10

Every kill is an experiment of its own: a search with the same number of runs is killed by SIGKILL
after a random number of runs, at a random moment, resumed, and compared. Its workers end by
themselves. Writes
``benchmarks/results/auto_kills.md``.
"""

import argparse
import contextlib
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nfgnn.training import machine_name

RESULT = Path(__file__).parent / "results" / "auto_kills.md"
TIMES = ("seconds", "seconds_to_first", "folder", "command")
NFGNN = [sys.executable, "-m", "nfgnn"]
EXPECTED = "same"
MOST_SECONDS = 1.0
"""Time between the last run that was waited for and the kill."""
PORTFOLIO = """
[[configuration]]
model = "GCN"
epochs = 40

[[configuration]]
model = "MLP"
epochs = 40

[[configuration]]
model = "LINK"
epochs = 40
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--max-runs", type=int, default=40)
    parser.add_argument("--graph", default="karate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = experiments(Path(folder), options)
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def experiments(folder: Path, options: argparse.Namespace) -> list[str]:
    # Few short trainings first, so that the search reaches all its stages.
    (folder / "three.toml").write_text(PORTFOLIO)
    command = ["auto", options.graph, "--max-runs", str(options.max_runs), "--workers", "2"]
    command += ["--portfolio", "three.toml"]
    began = time.perf_counter()
    run(folder, [*command, "--out", "whole"])
    whole = time.perf_counter() - began
    expected = result_of(folder / "whole")
    lines = [
        "# Searches that are killed and resumed",
        "",
        f"`python benchmarks/auto_kills.py --kills {options.kills} --seed {options.seed}` on "
        f"{machine_name()}, under other load: "
        f"`nfgnn {' '.join(command)}`, {whole:.0f} s without interruption.",
        "",
        "| kill | finished runs | leaderboard, ensemble and test score | weights |",
        "|---:|---:|---|---|",
    ]
    rng = random.Random(options.seed)
    equal = 0
    for number in range(1, options.kills + 1):
        out = f"run{number}"
        moment = rng.randint(0, expected["outcome"]["runs"])
        wait = rng.random() * MOST_SECONDS
        kill_at(folder, [*command, "--out", out], out, moment, wait)
        runs = finished_runs(folder, out)
        ended = (folder / out).exists()
        run(folder, [*command, "--out", out, "--resume"])
        found = result_of(folder / out)
        words = [EXPECTED if found[part] == expected[part] else "differ" for part in found]
        equal += found == expected
        finished = "all" if ended else str(runs)
        lines.append(f"| {number} | {finished} | {' | '.join(words)} |")
        print(lines[-1], flush=True)
        leftover = [path.name for path in folder.iterdir() if path.name.startswith(f".{out}")]
        if leftover:
            lines.append(f"Left behind: {', '.join(leftover)}")
    lines += ["", f"{equal} of {options.kills} searches end as the one that was not killed."]
    return lines


def run(folder: Path, arguments: Sequence[str]) -> None:
    done = subprocess.run(
        [*NFGNN, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stderr[-3000:]}")


def kill_at(folder: Path, arguments: Sequence[str], out: str, runs: int, seconds: float) -> None:
    """Start a command and kill it so many seconds after so many runs, unless it ends before."""
    process = subprocess.Popen(
        [*NFGNN, *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (folder / f".{out}.partial").exists() or finished_runs(folder, out) < runs:
        if process.poll() is not None:
            return
        time.sleep(0.01)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.kill()
    process.wait()


def finished_runs(folder: Path, out: str) -> int:
    return len(list(folder.glob(f".{out}.partial/runs/*/run.json")))


def result_of(folder: Path) -> dict[str, Any]:
    """Return the outcome without times, and the checksums of the weights."""
    outcome = without_times(json.loads((folder / "auto.json").read_text(encoding="utf-8")))
    weights = {}
    for path in sorted(folder.rglob("*.safetensors")):
        weights[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"outcome": outcome, "weights": weights}


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(part) for key, part in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [without_times(part) for part in value]
    return value


if __name__ == "__main__":
    main()
