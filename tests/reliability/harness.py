"""Commands that are interrupted at their file events: what is run, and what is compared."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

HERE = Path(__file__).parent
KARATE = ("karate", "--protocol", "stratified")
QUICK = ("--set", "epochs=3", "--device", "cpu")
TRAIN = ("train", *KARATE, "--runs", "2", "--workers", "1", *QUICK, "--out", "run")
STORE = ("precompute", "karate", "--rows", "all", "--device", "cpu", "--out", "store")
SERVED = ("precompute", str(HERE / "accounts"), "--serve", "--sketch", "4", "--K", "2")
"""A store with every part: sketches, the users' ids, and a weighted graph to attach nodes to."""
_LIMIT = 120.0  # seconds until a command counts as hanging
_TIMES = re.compile(r"seconds|_ms$|wait|per_second")
_TIME_SPANS = re.compile(r"\d+(\.\d+)? (s|min|h)\b")


@dataclass(frozen=True)
class Case:
    """A command, and the commands that prepare its folder."""

    command: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()


_RUN = (*TRAIN, "--set", "K=2")
_STORE_RUN = ("train", "store", *KARATE[1:], "--runs", "2", *QUICK, "--set", "batch_size=8")
_SERVED = (*SERVED, "--device", "cpu", "--out", "store")
_TUNE = ("tune", *KARATE, "--model", "MLP", "--trials", "2", "--seeds", "0", *QUICK)
_AUTO = ("auto", *KARATE, "--max-runs", "8", "--portfolio", str(HERE / "portfolio.toml"))
_TABLE = ("reproduce", "full", "--datasets", "karate", "--models", "MLP,GCN", "--runs", "2")
CASES = {
    "train": Case((*_RUN, "--resume")),
    "train on parts": Case((*_RUN, "--set", "partitions=4", "--resume")),
    "train --overwrite": Case((*_RUN, "--overwrite"), ((*TRAIN, "--set", "K=3"),)),
    "train STORE": Case((*_STORE_RUN, "--out", "run", "--resume"), ((*STORE, "--K", "2"),)),
    "precompute": Case((*STORE, "--K", "2")),
    "precompute --overwrite": Case((*STORE, "--K", "2", "--overwrite"), ((*STORE, "--K", "3"),)),
    "precompute --serve": Case(_SERVED),
    "predict": Case(("predict", "run", "karate", "-o", "p.csv"), (_RUN,)),
    "predict --extends": Case(
        ("predict", "run", str(HERE / "new_accounts"), "--extends", "store", "-o", "p.csv"),
        (_SERVED, (*_STORE_RUN, "--out", "run")),
    ),
    "serve": Case(
        ("serve", "run", "--extends", "store", "--device", "cpu", "--port", "0"),
        (_SERVED, (*_STORE_RUN, "--out", "run")),
    ),
    "predict --overwrite": Case(
        ("predict", "run", "karate", "-o", "p.parquet", "--overwrite"),
        (
            (*TRAIN, "--set", "K=3"),
            ("predict", "run", "karate", "-o", "p.parquet"),
            (*_RUN, "--overwrite"),
        ),
    ),
    "explore": Case(("explore", "run", "-o", "e.html"), (_RUN,)),
    "analyze": Case(("analyze", "karate", "--no-models")),
    "tune": Case((*_TUNE, "--out", "best.toml")),
    "auto": Case((*_AUTO, "--workers", "1", "--device", "cpu", "--out", "run", "--resume")),
    "reproduce": Case((*_TABLE, "--device", "cpu")),
    "datasets --template": Case(("datasets", "--template", "mine")),
    "NodeClassifier.save": Case(("save", "model"), (("save", "model"),)),
}


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    status: int | None
    """Exit status; negative for a signal, ``None`` if it did not end."""
    events: int
    failed: str
    """The kind of event that failed or was interrupted; empty if none was."""
    output: str

    def problem(self) -> str | None:
        """Return what is wrong with a command that met a fault, if anything is."""
        if self.status is None:
            return "hangs"
        if "Traceback" in self.output:
            return "prints a traceback"
        if self.status == 0:
            return None
        lines = [line for line in self.output.splitlines() if line.startswith("nfgnn: ")]
        if self.status != 2:
            return f"ends with status {self.status}: {' '.join(lines) or self.output[-300:]}"
        if len(lines) != 1:
            return f"prints {len(lines)} messages"
        return None


class Server:
    """A process that runs commands with faults; see ``server.py``."""

    def __init__(self, folder: Path, library: Path, names: Iterable[str]) -> None:
        self.folder = folder
        environment = {
            **os.environ,
            "LD_PRELOAD": str(library),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(HERE.parents[1]),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "COLUMNS": "200",
        }
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        commands = [CASES[name].command for name in names]
        self._send([command for command in commands if command[0] != "save"])

    def run(
        self,
        command: tuple[str, ...],
        folder: Path,
        at: int = 0,
        error: int = 0,
        lasting: bool = False,
        deletes: bool = False,
        reads: bool = False,
        kill_after: float | None = None,
    ) -> Outcome:
        """Run a command in a folder.

        Args:
            command: its arguments.
            folder: where it runs, and whose file events are counted.
            at: the event that fails, from 1 on; 0 for none.
            error: the error number; 0 kills the process instead.
            lasting: whether all later events fail, too.
            deletes: whether deleting files is an event that can fail.
            reads: whether events are those that read files, not those that change them.
            kill_after: seconds after which the process is killed, wherever it is.
        """
        job = {
            "command": command,
            "folder": str(folder),
            "output": str(self.folder / "output.txt"),
            "at": at,
            "error": error,
            "lasting": lasting,
            "deletes": deletes,
            "reads": reads,
            "kill_after": kill_after,
            "limit": _LIMIT,
        }
        self._send(job)
        assert self._process.stdout is not None
        return Outcome(**json.loads(self._process.stdout.readline()))

    def _send(self, content: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(content) + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        self._process.communicate()


@contextmanager
def running_server(folder: Path, names: Iterable[str] = CASES) -> Iterator[Server]:
    """Compile the library and start a server.

    Args:
        folder: where the server keeps its own files.
        names: the cases that it runs once, so that they are fast afterwards.
    """
    library = folder / "file_events.so"
    compiler = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "file_events.c")]
    subprocess.run([*compiler, "-ldl"], check=True)
    server = Server(folder, library, names)
    try:
        yield server
    finally:
        server.close()


@dataclass(frozen=True)
class Prepared:
    """A case with its folder before the command, and what an uninterrupted command leaves."""

    case: Case
    folder: Path
    before: dict[str, Any]
    after: dict[str, Any]
    events: int

    def fresh(self, folder: Path) -> Path:
        """Return a copy of the prepared folder."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder)
        return folder


def prepare(server: Server, name: str, folder: Path) -> Prepared:
    """Run the commands that come before a case, and the case itself without a fault."""
    case = CASES[name]
    start = folder / "start"
    start.mkdir(parents=True)
    for command in case.before:
        outcome = server.run(command, start)
        assert outcome.status == 0, outcome.output
    whole = folder / "whole"
    shutil.copytree(start, whole)
    outcome = server.run(case.command, whole)
    assert outcome.status == 0, outcome.output
    return Prepared(case, start, content(start), content(whole), outcome.events)


def damage(prepared: Prepared, folder: Path) -> str | None:
    """Return which existing output an interrupted command has damaged, if any.

    Every file or folder of the user and of earlier commands is as it was, or as it will be.
    """
    found = content(folder)
    for entry in {name.partition("/")[0] for name in prepared.before}:
        if _below(found, entry) not in (
            _below(prepared.before, entry),
            _below(prepared.after, entry),
        ):
            return f"{entry} is damaged"
    return None


def difference(expected: dict[str, Any], found: dict[str, Any]) -> str | None:
    """Return how a folder differs from that of an uninterrupted command, if it does."""
    missing = sorted(expected.keys() - found.keys())
    if missing:
        return f"lacks {missing[0]}"
    more = sorted(found.keys() - expected.keys())
    if more:
        return f"has left {more[0]}"
    for name, value in expected.items():
        if found[name] != value:
            return f"{name} differs"
    return None


def _below(files: dict[str, Any], entry: str) -> dict[str, Any]:
    # The figures of a run are drawn after the run is published.
    figures = re.compile(r"[^/]+/(run|report)\.png|[^/]+/\.(run|report)\.png\..*\.partial")
    return {
        name: value
        for name, value in files.items()
        if name.partition("/")[0] == entry and not figures.fullmatch(name)
    }


def content(folder: Path) -> dict[str, Any]:
    """Return all files and folders below a folder with their content, but for times."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        found[str(path.relative_to(folder))] = None if path.is_dir() else _read(path, folder)
    return found


def _read(path: Path, folder: Path) -> Any:
    if path.name == "SHA256SUMS":  # of files that hold times
        return [line.split(maxsplit=1)[1] for line in path.read_text().splitlines()]
    if path.suffix == ".sqlite":
        return _rows(path)
    if path.suffix == ".html":
        return _TIME_SPANS.sub("TIME", path.read_text())
    if path.name == "records.parquet":
        return pq.read_table(path).drop_columns("seconds").to_pylist()
    if path.suffix == ".json":
        try:
            return _without_times(json.loads(path.read_text().replace(str(folder), "FOLDER")))
        except ValueError:
            return path.read_bytes()
    return path.read_bytes()


def _rows(path: Path) -> Any:
    query = "SELECT key, config, json_remove(metrics, '$.seconds') FROM runs ORDER BY key"
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.DatabaseError:
        return path.read_bytes()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(v) for key, v in value.items() if not _TIMES.search(key)}
    if isinstance(value, list):
        return [_without_times(item) for item in value]
    return value
