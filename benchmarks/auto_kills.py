"""Kill `nfgnn auto` at random moments, resume it, and compare with a search that was not killed.

    python benchmarks/auto_kills.py --kills 10
    python benchmarks/auto_kills.py --kills 3 --engine ray
    python benchmarks/auto_kills.py --kills 3 --engine ray --victim worker

Every kill is an experiment of its own: a search with the same number of runs is killed by SIGKILL
after a random number of runs, at a random moment, resumed, and compared. Its workers end by
themselves. With ``--victim worker``, a Ray worker that is training is killed instead, and the
search goes on. With ``--engine ray``, the search that is not killed trains in a process pool.

Writes ``benchmarks/results/auto_kills.md``, ``auto_kills_ray.md`` or ``auto_kills_ray_worker.md``.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nfgnn.ray_cluster import ray_cluster
from nfgnn.training import machine_name

RESULTS = Path(__file__).parent / "results"
MARK = "NFGNN_AUTO_KILLS"
"""Environment variable by which the workers of the cluster are found."""
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
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--victim", choices=("command", "worker"), default="command")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.victim == "worker" and options.engine == "local":
        parser.error("--victim worker kills a Ray worker: add --engine ray")
    out = options.out or RESULTS / f"{result_name(options)}.md"
    with tempfile.TemporaryDirectory() as folder, cluster(options.engine):
        lines = experiments(Path(folder), options)
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


@contextlib.contextmanager
def cluster(engine: str) -> Iterator[None]:
    """Start a Ray cluster that all commands connect to."""
    if engine == "local":
        yield
        return
    os.environ[MARK] = uuid.uuid4().hex
    with ray_cluster(None, print, cpus=2) as ray:
        os.environ["RAY_ADDRESS"] = str(ray.get_runtime_context().gcs_address)
        yield


def result_name(options: argparse.Namespace) -> str:
    if options.engine == "local":
        return "auto_kills"
    return "auto_kills_ray" if options.victim == "command" else "auto_kills_ray_worker"


def experiments(folder: Path, options: argparse.Namespace) -> list[str]:
    # Few short trainings first, so that the search reaches all its stages.
    (folder / "three.toml").write_text(PORTFOLIO)
    command = ["auto", options.graph, "--max-runs", str(options.max_runs), "--workers", "2"]
    command += ["--portfolio", "three.toml"]
    killed = [*command, "--engine", "ray"] if options.engine == "ray" else command
    began = time.perf_counter()
    run(folder, [*command, "--out", "whole"])
    whole = time.perf_counter() - began
    expected = result_of(folder / "whole")
    arguments = f"--kills {options.kills} --max-runs {options.max_runs} --seed {options.seed}"
    title = "# Searches that are killed and resumed"
    if options.engine == "ray":
        arguments += f" --engine ray --victim {options.victim}"
        title += " on Ray"
    if options.victim == "worker":
        title = "# Searches on Ray that lose a worker"
    lines = [
        title,
        "",
        f"`python benchmarks/auto_kills.py {arguments}` on {machine_name()}, under other load: "
        f"`nfgnn {' '.join(command)}`, {whole:.0f} s without interruption"
        + (", compared with the same command and `--engine ray`." if killed != command else "."),
        "",
        "| kill | finished runs | leaderboard, ensemble and test score | weights |",
        "|---:|---:|---|---|",
    ]
    rng = random.Random(options.seed)
    equal = 0
    for number in range(1, options.kills + 1):
        out = f"run{number}"
        # At the end of a search no worker is training.
        latest = expected["outcome"]["runs"] // (2 if options.victim == "worker" else 1)
        moment = rng.randint(0, latest)
        wait = rng.random() * MOST_SECONDS
        runs = kill_at(folder, [*killed, "--out", out], out, moment, wait, options.victim)
        ended = runs is None
        if options.victim == "command":
            run(folder, [*killed, "--out", out, "--resume"])
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


def kill_at(
    folder: Path, arguments: Sequence[str], out: str, runs: int, seconds: float, victim: str
) -> int | None:
    """Start a command and kill it so many seconds after so many runs, unless it ends before.

    Returns:
        How many runs were finished at that moment; ``None`` if nothing was killed.
    """
    process = subprocess.Popen(
        [*NFGNN, *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (folder / f".{out}.partial").exists() or finished_runs(folder, out) < runs:
        if process.poll() is not None:
            return None
        time.sleep(0.01)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    finished = None
    if victim == "worker":
        while finished is None and process.poll() is None:
            finished = kill_worker(folder, out)
    elif process.poll() is None:
        finished = finished_runs(folder, out)
        process.kill()
    process.wait()
    return finished


def kill_worker(folder: Path, out: str) -> int | None:
    """Kill a Ray worker that is training, and return how many runs were finished."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            title, environment = ((process / name).read_bytes() for name in ("cmdline", "environ"))
            if b"ray::_run_batch" in title and os.environ[MARK].encode() in environment:
                finished = finished_runs(folder, out)
                os.kill(int(process.name), signal.SIGKILL)
                return finished
    return None


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
