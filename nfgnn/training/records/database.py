"""Runs as facts that are only added: one row per run, in an SQLite file that several processes may write.

A run is known by a hash of all that decides it: the graph's fingerprint, protocol, seed, the configuration with every
value written out, and :data:`RESULTS_VERSION`. Two processes that finish the same run leave one row. The device is
told, but is no part of the key: a run made on a GPU is not made again on a CPU.

A configuration that older code has recorded lacks the settings that were added since. Where a database is opened or a
file merged, they are filled in with their defaults, so a new setting does not make old runs strangers.
"""

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

from nfgnn.errors import UserError
from nfgnn.training.config import RunConfig

RESULTS_VERSION = 1
"""Raised by hand when runs come out differently by more than rounding; older records are then not used."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY, dataset TEXT NOT NULL, fingerprint TEXT NOT NULL, protocol TEXT NOT NULL,
    seed INTEGER NOT NULL, config TEXT NOT NULL, metrics TEXT NOT NULL, device TEXT NOT NULL, machine TEXT NOT NULL,
    version INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS by_dataset ON runs (dataset);
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
_INSERT = f"INSERT INTO runs VALUES ({', '.join('?' * 10)}) ON CONFLICT (key) DO NOTHING"
_BUSY_SECONDS = 120.0


@dataclass(frozen=True)
class Record:
    """One run and what came of it."""

    dataset: str
    fingerprint: str
    """Hash of the graph's content: :func:`nfgnn.training.run_folder.fingerprint`."""
    protocol: str
    seed: int
    config: Mapping[str, Any]
    """:meth:`RunConfig.to_dict <nfgnn.training.RunConfig.to_dict>`: the model's name and every setting."""
    metrics: Mapping[str, float]
    """Whatever was measured: ``test_accuracy``, ``val_loss``, ``epochs``, ``seconds``, …; fractions and seconds."""
    device: str
    machine: str
    version: int = RESULTS_VERSION

    @property
    def model(self) -> str:
        return str(self.config["model"])

    @property
    def key(self) -> str:
        return run_key(self.fingerprint, self.protocol, self.seed, self.config, self.version)


def run_key(
    fingerprint: str,
    protocol: str,
    seed: int,
    config: Mapping[str, Any],
    version: int = RESULTS_VERSION,
) -> str:
    """The hash by which a run is known."""
    return _digest([fingerprint, protocol, seed, dict(config), version])


class Records:
    """The database.

    Args:
        path: the SQLite file; made where it is missing.

    Example:
        >>> with Records(Path("runs/records.sqlite")) as records:
        ...     records.add([record])
        ...     records.find(record.fingerprint, "full", record.config, range(1000, 1010))
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            self.close()
            raise UserError(
                f"{path} is not a database of records ({error}): name another file, or remove it"
            ) from None

    def _prepare(self) -> None:
        _patiently(lambda: self._connection.execute("PRAGMA journal_mode = WAL"))
        self._connection.execute("PRAGMA synchronous = NORMAL")  # safe against a killed process
        _patiently(lambda: self._connection.executescript(_SCHEMA))
        known = _digest(_defaults())
        if self.note("defaults") != known:
            with self._transaction():
                self._refresh()
                self.set_note("defaults", known)

    def __enter__(self) -> "Records":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def add(self, records: Iterable[Record]) -> int:
        """Add runs, all or none of them; those that are known already are left alone. Returns how many were new."""
        rows = [_row(record) for record in records]
        with self._transaction():
            before = self._connection.total_changes
            self._connection.executemany(_INSERT, rows)
            return self._connection.total_changes - before

    def find(
        self, fingerprint: str, protocol: str, config: Mapping[str, Any], seeds: Sequence[int]
    ) -> dict[int, Record]:
        """The runs of one configuration that are there, by seed."""
        keys = [run_key(fingerprint, protocol, seed, config) for seed in seeds]
        found = {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            for record in self._select(f"WHERE key IN ({', '.join('?' * len(part))})", part):
                found[record.seed] = record
        return found

    def find_alike(
        self,
        fingerprint: str,
        protocol: str,
        alike: Callable[[Mapping[str, Any]], bool],
        seeds: Sequence[int],
    ) -> dict[int, Record]:
        """The runs of all configurations that are alike in what counts, one for every seed."""
        query = "WHERE fingerprint = ? AND protocol = ? AND version = ? ORDER BY key"
        found = self._select(query, [fingerprint, protocol, RESULTS_VERSION])
        return {
            record.seed: record for record in found if record.seed in seeds and alike(record.config)
        }

    def all(self) -> list[Record]:
        """Every run of this version of the code, in an order that does not depend on when they were made."""
        runs = list(self._select("WHERE version = ?", [RESULTS_VERSION]))
        return sorted(
            runs,
            key=lambda r: (
                r.dataset,
                r.protocol,
                r.model,
                _digest(r.config),
                r.seed,
                r.fingerprint,
            ),
        )

    def fingerprints(self, dataset: str) -> list[str]:
        """The fingerprints of the graphs of this name that there are runs of, most runs first."""
        query = (
            "SELECT fingerprint FROM runs WHERE dataset = ? AND version = ? "
            "GROUP BY fingerprint ORDER BY count(*) DESC, fingerprint"
        )
        return [row[0] for row in self._connection.execute(query, [dataset, RESULTS_VERSION])]

    def protocols(self, fingerprint: str) -> list[str]:
        """The protocols of the runs on a graph."""
        query = "SELECT DISTINCT protocol FROM runs WHERE fingerprint = ? AND version = ? ORDER BY protocol"
        return [row[0] for row in self._connection.execute(query, [fingerprint, RESULTS_VERSION])]

    def note(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM notes WHERE name = ?", [name]).fetchone()
        return row[0] if row else None

    def set_note(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", [name, value])

    def _select(self, where: str, values: Sequence[Any]) -> Iterator[Record]:
        columns = ", ".join(field.name for field in fields(Record))
        for row in self._connection.execute(f"SELECT {columns} FROM runs {where}", values):
            dataset, fingerprint, protocol, seed, config, metrics, *rest = row
            yield Record(
                dataset, fingerprint, protocol, seed, _parsed(config), json.loads(metrics), *rest
            )

    def _refresh(self) -> None:
        """Bring configurations that older code has written up to date."""
        for (text,) in self._connection.execute("SELECT DISTINCT config FROM runs").fetchall():
            if text == json.dumps(up_to_date(json.loads(text)), sort_keys=True):
                continue
            for record in list(self._select("WHERE config = ?", [text])):
                new = replace(record, config=up_to_date(record.config))
                self._connection.execute("DELETE FROM runs WHERE key = ?", [record.key])
                self._connection.execute(_INSERT, _row(new))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute(
            "BEGIN IMMEDIATE"
        )  # waits for other writers here, and nowhere later
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


def up_to_date(config: Mapping[str, Any]) -> dict[str, Any]:
    """A recorded configuration with the settings that were added since; as it is where the model has gone."""
    try:
        return RunConfig.from_dict(config).to_dict()
    except UserError:
        return dict(config)


def _row(record: Record) -> tuple[Any, ...]:
    values = (
        json.dumps(v, sort_keys=True) if isinstance(v, Mapping) else v for v in astuple(record)
    )
    return record.key, *values


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


@lru_cache(maxsize=4096)
def _parsed(config: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(config)
    return content


def _defaults() -> dict[str, Any]:
    from nfgnn.nn.models import MODELS

    return {
        name: RunConfig.resolve(name, {}, None, None, "none").to_dict() for name in sorted(MODELS)
    }


def _patiently(action: Any) -> None:
    """The switch to write-ahead logging does not wait for other processes by itself."""
    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            action()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            return
