"""Kill a table and a search at ten random moments each, resume, and compare with whole runs.

    python benchmarks/kill_resume.py

Each kill waits for a random number of records and then for a random part of a second, so that it
may interrupt a training or a write. Everything but times must be equal: records, tables, settings.
"""

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

COMMANDS = {
    "reproduce": "reproduce full --datasets karate --models MLP,GCN,GPRGNN --runs 10 --workers 2",
    "tune": "tune karate --protocol stratified --trials 20 --seeds 0-1 --set epochs=60 "
    "--out results/best.toml --storage results/t.sqlite",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "commands",
        nargs="*",
        default=list(COMMANDS),
        help=f"of {', '.join(COMMANDS)}; all by default",
    )
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    arguments = parser.parse_args()
    moments = random.Random(arguments.seed)
    failed = False
    for name in arguments.commands:
        command = [sys.executable, "-m", "nfgnn", *COMMANDS[name].split()]
        with tempfile.TemporaryDirectory() as folder:
            whole, struck = Path(folder, "whole"), Path(folder, "struck")
            whole.mkdir()
            struck.mkdir()
            start = time.perf_counter()
            subprocess.run(command, cwd=whole, check=True, capture_output=True)
            duration = time.perf_counter() - start
            counts = sorted(moments.sample(range(records(whole) - 2), arguments.kills))
            kills = [killed(command, struck, count, moments.uniform(0, 0.5)) for count in counts]
            subprocess.run(command, cwd=struck, check=True, capture_output=True)
            same = content(whole) == content(struck)
        failed |= not same
        print(f"{name}: {duration:.1f} s undisturbed; killed at records: {', '.join(kills)}")
        print(f"{name}: {'everything but times is equal' if same else 'DIFFERENT'}", flush=True)
    sys.exit(failed)


def killed(command: list[str], folder: Path, count: int, seconds: float) -> str:
    """Kill the command shortly after it has so many records; no worker process may remain."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while process.poll() is None and records(folder) < count:
        time.sleep(0.02)
    time.sleep(seconds)
    ended = process.poll() is not None
    process.send_signal(signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 10
    while alive(process.pid):
        if time.monotonic() > end:
            raise SystemExit("a worker outlived its parent")
        time.sleep(0.1)
    return f"{records(folder)}{' (had ended)' if ended else ''}"


def alive(session: int) -> bool:
    """Whether a process of this session is left."""
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


def records(folder: Path) -> int:
    return sum(len(rows) for name, rows in content(folder).items() if name.endswith(".sqlite"))


def content(folder: Path) -> dict[str, object]:
    """What a command has left, but for times."""
    left: dict[str, object] = {}
    for path in sorted(folder.glob("results/*")):
        if path.suffix == ".sqlite":
            with closing(
                sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)
            ) as connection:
                query = (
                    "SELECT key, config, json_remove(metrics, '$.seconds'), device FROM runs "
                    "ORDER BY key"
                )
                made = connection.execute(
                    "SELECT 1 FROM sqlite_master WHERE name = 'runs'"
                ).fetchone()
                left[path.name] = connection.execute(query).fetchall() if made else []
        elif path.suffix in (".md", ".tex", ".toml") or path.name.startswith("full-"):
            left[path.name] = path.read_bytes()
    return left


if __name__ == "__main__":
    main()
