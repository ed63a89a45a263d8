"""Interrupt commands at every file event, and record what happened.

    python tests/reliability/record.py faults --workers 2
    python tests/reliability/record.py reads --workers 2
    python tests/reliability/record.py kills --workers 2

``faults`` tries a full disk, a read-only disk and a single refusal at every file event of every
command, or at every N-th with ``--every N``. ``reads`` lets calls that read files fail instead.
``kills`` interrupts each command ``--kills`` times, two thirds of them at random file events and
the others at random moments. They write ``benchmarks/results/faults.md``, ``reads.md`` and
``kills.md``; status 1 means that something was wrong.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from reliability.faults import FAULTS, READ_FAULTS, try_fault
from reliability.harness import CASES, prepare, running_server
from reliability.kills import kill_at_event, kill_at_moment, random_events

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
KILLED = (
    *("train", "train STORE", "train --overwrite", "precompute", "precompute --serve"),
    *("predict --extends", "tune", "auto", "reproduce"),
)
READING = ("predict --extends", "serve")
Row = tuple[list[str], list[str]]
"""The cells of a line of the table, and the problems behind it."""


def fault_row(job: tuple[str, str], every: int) -> Row:
    """Try one kind of fault at every file event of a command, or at every N-th."""
    name, kind = job
    fault = {**FAULTS, **READ_FAULTS}[kind]
    problems = []
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place, running_server(Path(place), [name]) as server:
        prepared = prepare(server, name, Path(place, "case"))
        at = 1
        while True:
            outcome, problem = try_fault(server, prepared, fault, at, Path(place, "work"))
            if not outcome.failed:
                break
            ends["message" if outcome.status else "finished"] += 1
            if problem:
                problems.append(f"{name}, {kind}, event {at} ({outcome.failed}): {problem}")
            at += every
    cells = [f"`{name}`", kind, str(every), str(ends.total()), str(ends["message"])]
    return [*cells, str(ends["finished"]), str(len(problems))], problems


def kill_row(job: tuple[str, str], kills: int) -> Row:
    """Kill a command at random file events or at random moments."""
    name, kind = job
    problems = []
    killed = 0
    with tempfile.TemporaryDirectory() as place, running_server(Path(place), [name]) as server:
        prepared = prepare(server, name, Path(place, "case"))
        work = Path(place, "work")
        start = time.perf_counter()
        server.run(prepared.case.command, prepared.fresh(work))
        duration = time.perf_counter() - start
        attempts: list[Callable[[], tuple[object, str | None]]] = []
        if kind == "file event":
            for at in random_events(prepared, 2 * kills // 3, seed=0):
                attempts.append(partial(kill_at_event, server, prepared, at, work))
        else:
            moments = random.Random(1)
            for _ in range(kills // 3):
                after = moments.uniform(0, duration)
                attempts.append(partial(kill_at_moment, server, prepared, after, work))
        for number, attempt in enumerate(attempts):
            _, problem = attempt()
            killed += 1
            if problem:
                problems.append(f"{name}, {kind} {number}: {problem}")
    cells = [f"`{name}`", kind, str(killed), str(killed - len(problems)), str(len(problems))]
    return cells, problems


KINDS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "faults": (
        [(name, kind) for name in CASES for kind in FAULTS],
        ["command", "disk", "every N-th", "tried", "message", "finished", "problems"],
    ),
    "reads": (
        [(name, kind) for name in READING for kind in READ_FAULTS],
        ["command", "disk", "every N-th", "tried", "message", "finished", "problems"],
    ),
    "kills": (
        [(name, kind) for name in KILLED for kind in ("file event", "moment")],
        ["command", "killed at a random", "kills", "equal after resuming", "problems"],
    ),
}
TITLES = {
    "faults": "Full, read-only and refusing disks at every file event",
    "reads": "Disks that cannot be read",
    "kills": "Killed with SIGKILL, and resumed",
}
NOTES = {
    "faults": "A file event opens a file for writing, writes, truncates, syncs, renames, makes a "
    "folder, or deletes. A full or read-only disk fails from that event on, a refusal once. Every "
    "command ends with status 2 and one message, or finishes; existing outputs are as they were or "
    "as they will be; the same command on a working disk then leaves exactly the files of an "
    "uninterrupted one.",
    "reads": "An event opens a file or folder for reading, reads, or maps a file into memory. It "
    "fails with an input/output error, on an unreadable disk like all later ones. Every command "
    "ends with status 2 and one message, or with the result of a working disk; `serve` answers one "
    "request.",
    "kills": "After the same command has run again, all files are those of an uninterrupted one, "
    "but for times, and nothing else is left.",
}


def table(kind: str, rows: list[Row], machine: str) -> Iterator[str]:
    """Yield the lines of the recorded file."""
    header = KINDS[kind][1]
    yield f"# {TITLES[kind]}"
    yield ""
    yield f"`python tests/reliability/record.py {kind}`, on {machine}. {NOTES[kind]}"
    yield ""
    yield f"| {' | '.join(header)} |"
    yield f"|---|---|{'---:|' * (len(header) - 2)}"
    for cells, _ in rows:
        yield f"| {' | '.join(cells)} |"
    yield ""
    for _, problems in rows:
        for problem in problems:
            yield f"- {problem}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="of the events")
    parser.add_argument("--kills", type=int, default=30, help="of every command of `kills`")
    parser.add_argument("--commands", nargs="*", default=list(CASES), help="only these")
    parser.add_argument("--machine", default="this machine", help="for the table")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    chosen = [job for job in KINDS[arguments.kind][0] if job[0] in arguments.commands]
    work: Callable[[tuple[str, str]], Row] = partial(fault_row, every=arguments.every)
    if arguments.kind == "kills":
        work = partial(kill_row, kills=arguments.kills)
    with ProcessPoolExecutor(arguments.workers) as pool:
        rows = list(pool.map(work, chosen))
    text = "\n".join(table(arguments.kind, rows, arguments.machine)).rstrip() + "\n"
    (arguments.out / f"{arguments.kind}.md").write_text(text, encoding="utf-8")
    print(text)
    sys.exit(any(problems for _, problems in rows))


if __name__ == "__main__":
    main()
