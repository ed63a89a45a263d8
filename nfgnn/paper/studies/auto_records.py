"""The results of the evaluation of ``nfgnn auto``: one JSON line per number.

Several processes may add lines to a folder. The lines of several machines can be put together by
copying their files into one folder. The table beside the report (:func:`records_table`) keeps the
results when the lines are gone: :func:`read_table` reads them from it.
"""

import csv
import fcntl
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nfgnn.paper.studies.auto_plan import Task

FILE = "records.jsonl"
TABLE = "auto.csv"
_COLUMNS = (
    "graph",
    "protocol",
    "seed",
    "method",
    "budget",
    "metric",
    "test",
    "single",
    "validation",
    "seconds",
    "seconds_to_first",
    "device",
    "problem",
    "nodes",
    "machine",
    "cores",
    "command",
)


@dataclass(frozen=True)
class EvaluationRecord:
    """A result, or why there is none."""

    graph: str
    protocol: str
    seed: int
    method: str
    seconds_allowed: float | None
    """The budget of a search."""
    metric: str
    test: float | None
    """The metric on test nodes; ``None`` if the method failed."""
    validation: float | None
    seconds: float
    device: str
    machine: str
    cores: int
    command: str
    problem: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def task(self) -> Task:
        return Task(self.graph, self.seed, self.method, self.seconds_allowed)


def read_records(folder: Path) -> list[EvaluationRecord]:
    """Return the records of all files of a folder; of equal tasks the last one."""
    found: dict[Task, EvaluationRecord] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            # A process that is killed while it writes leaves a part of a line.
            if line.endswith("}"):
                record = EvaluationRecord(**json.loads(line))
                found[record.task] = record
    return list(found.values())


def append_record(folder: Path, record: EvaluationRecord) -> None:
    """Add a line to the file of the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE).open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        # The first character ends a line that a killed process has left unfinished.
        start = "\n" if file.tell() else ""
        file.write(start + json.dumps(asdict(record)))


def records_table(records: Sequence[EvaluationRecord]) -> str:
    """Return the records as CSV, one line each. Details that no report needs are left out."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()

    def order(record: EvaluationRecord) -> tuple[str, str, float, int]:
        return (record.graph, record.method, record.seconds_allowed or 0.0, record.seed)

    for record in sorted(records, key=order):
        values = {
            **asdict(record),
            "budget": "" if record.seconds_allowed is None else f"{record.seconds_allowed:g}",
            "test": _shown(record.test),
            "single": _shown(record.details.get("single")),
            "validation": _shown(record.validation),
            "seconds": f"{record.seconds:.1f}",
            "seconds_to_first": record.details.get("seconds_to_first", ""),
            "nodes": record.details.get("nodes", ""),
        }
        writer.writerow({column: values[column] for column in _COLUMNS})
    return text.getvalue()


def read_table(path: Path) -> list[EvaluationRecord]:
    """Return the records of a table; none if there is no such file."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [_read_row(row) for row in csv.DictReader(file)]


def newest_records(
    older: Sequence[EvaluationRecord], newer: Sequence[EvaluationRecord]
) -> list[EvaluationRecord]:
    """Return all records; of equal tasks the newer one.

    Tasks are equal if graph, protocol, seed, method and budget are.
    """
    found = {(record.task, record.protocol): record for record in (*older, *newer)}
    return list(found.values())


def _read_row(row: dict[str, str]) -> EvaluationRecord:
    details: dict[str, Any] = {}
    for name, kind in (("single", float), ("seconds_to_first", float), ("nodes", int)):
        if row.get(name):
            details[name] = kind(row[name])
    return EvaluationRecord(
        graph=row["graph"],
        protocol=row["protocol"],
        seed=int(row["seed"]),
        method=row["method"],
        seconds_allowed=float(row["budget"]) if row["budget"] else None,
        metric=row["metric"],
        test=float(row["test"]) if row["test"] else None,
        validation=float(row["validation"]) if row["validation"] else None,
        seconds=float(row["seconds"]),
        device=row["device"],
        machine=row["machine"],
        cores=int(row["cores"]),
        command=row["command"],
        problem=row["problem"],
        details=details,
    )


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"
