"""The results of the evaluation of ``nfgnn auto``: one JSON line per number.

Several processes may add lines to a folder. The lines of several machines can be put together by
copying their files into one folder.
"""

import fcntl
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nfgnn.paper.studies.auto_plan import Task

FILE = "records.jsonl"


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
