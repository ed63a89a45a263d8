"""The database of records: one row per run, in an SQLite file that several processes may write.

Rows are only added. A run is identified by a hash of everything that decides it: fingerprint of
the graph, protocol, seed, configuration and :data:`RESULTS_VERSION`. The device is recorded but
not part of the key: a run made on a GPU is not made again on a CPU. Timed runs are an exception.
"""

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

from nfgnn.errors import UserError
from nfgnn.nn import MODELS
from nfgnn.training.config import RunConfig
from nfgnn.training.device import device_name, machine_name
from nfgnn.training.execution import Results
from nfgnn.training.records.record import RESULTS_VERSION, Record, digest, run_key
from nfgnn.training.run import RunResult, RunSpec, same_cost

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY, dataset TEXT NOT NULL, fingerprint TEXT NOT NULL, protocol TEXT NOT NULL,
    seed INTEGER NOT NULL, config TEXT NOT NULL, metrics TEXT NOT NULL, device TEXT NOT NULL,
    machine TEXT NOT NULL, version INTEGER NOT NULL, timed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS by_dataset ON runs (dataset);
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
_COLUMNS = [field.name for field in fields(Record)]
_INSERT = (
    f"INSERT INTO runs (key, {', '.join(_COLUMNS)}) "
    f"VALUES ({', '.join('?' * (len(_COLUMNS) + 1))}) ON CONFLICT (key) DO NOTHING"
)
_BUSY_SECONDS = 120.0
_FREE_BYTES = 2**20  # with less, an I/O error is a lack of space
_FULL = "the disk is full; free some space and run the same command again"
_READ_ONLY = (
    "cannot be written, because the file, its folder or the disk is read-only; change the "
    "permissions, or copy the file to a folder that you can write"
)
_LOCKED = (
    "another process has locked the database for {seconds:.0f} s; wait for it to end and run the "
    "same command again"
)
_DAMAGED = (
    "is damaged, or not a database of records; keep the file, and restore it from a copy or "
    "recover it with `sqlite3 FILE .recover`. Use another file meanwhile"
)
_UNREADABLE = "the disk reports an error ({error}); check the disk and run the same command again"
_MESSAGES = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; check that it is a file in a folder you can write",
    sqlite3.SQLITE_IOERR: _UNREADABLE,
    # The tables of another program have other columns.
    sqlite3.SQLITE_ERROR: _DAMAGED,
}
_KEYS_PER_QUERY = 500


class Records:
    """The database.

    Args:
        path: the SQLite file; created if it does not exist.

    Example:
        >>> with Records(Path("runs/records.sqlite")) as records:
        ...     records.add([record])
        ...     records.find(record.fingerprint, "full", record.config, range(1000, 1010))
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            with self._explained():
                self._prepare()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise errors of the disk and of SQLite as messages for the user."""
        try:
            yield
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written ({error.strerror})") from None
        except sqlite3.DatabaseError as error:
            message = _explain(error, self.path)
            if message is None:
                raise
            raise UserError(f"{self.path}: {message}") from None

    def _prepare(self) -> None:
        _retry_while_locked(lambda: self._connection.execute("PRAGMA journal_mode = WAL"))
        self._connection.execute("PRAGMA synchronous = NORMAL")  # safe against a killed process
        _retry_while_locked(lambda: self._connection.executescript(_SCHEMA))
        format_digest = digest([2, _all_defaults()])
        if self.note("defaults") != format_digest:
            with self._transaction():
                self._upgrade()
                self.set_note("defaults", format_digest)

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
        """Add runs, all or none of them, and return how many were new."""
        rows = [_row(record) for record in records]
        with self._transaction():
            before = self._connection.total_changes
            self._connection.executemany(_INSERT, rows)
            return self._connection.total_changes - before

    def find(
        self, fingerprint: str, protocol: str, config: Mapping[str, Any], seeds: Sequence[int]
    ) -> dict[int, Record]:
        """Return the recorded runs of one configuration, by seed."""
        keys = [run_key(fingerprint, protocol, seed, config) for seed in seeds]
        return {record.seed: record for record in self._by_keys(keys)}

    def find_timed(
        self, fingerprint: str, protocol: str, config: RunConfig, seeds: Sequence[int]
    ) -> list[Record]:
        """Return the timed runs of all configurations of the same cost, one per seed and machine.

        See :func:`~nfgnn.training.run.same_cost`.
        """
        query = "WHERE fingerprint = ? AND protocol = ? AND version = ? AND timed ORDER BY key"
        rows = self._select(query, [fingerprint, protocol, RESULTS_VERSION])
        found = {}
        for record in rows:
            if record.seed in seeds and same_cost(config, record.config):
                found[record.device, record.machine, record.seed] = record
        return sorted(found.values(), key=lambda r: (r.device, r.machine, r.seed))

    def all(self) -> list[Record]:
        """Return all runs of this version, in an order that does not depend on their age."""
        runs = list(self._select("WHERE version = ?", [RESULTS_VERSION]))
        return sorted(runs, key=_export_order)

    def fingerprints(self, dataset: str) -> list[str]:
        """Return the fingerprints of the graphs of this name, those with most runs first."""
        query = (
            "SELECT fingerprint FROM runs WHERE dataset = ? AND version = ? "
            "GROUP BY fingerprint ORDER BY count(*) DESC, fingerprint"
        )
        return [row[0] for row in self._fetch(query, [dataset, RESULTS_VERSION])]

    def note(self, name: str) -> str | None:
        """Return a value that was kept with :meth:`set_note`."""
        query = "SELECT value FROM notes WHERE name = ?"
        rows = self._fetch(query, [name])
        return rows[0][0] if rows else None

    def set_note(self, name: str, value: str) -> None:
        """Keep a value in the database."""
        with self._explained():
            self._connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", [name, value])

    def _fetch(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        # All rows at once: SQLite finds damage while it reads them.
        with self._explained():
            return self._connection.execute(query, values).fetchall()

    def has_keys(self, keys: Sequence[str]) -> set[str]:
        """Return those of the keys that are recorded."""
        return {record.key for record in self._by_keys(keys)}

    def _by_keys(self, keys: Sequence[str]) -> Iterator[Record]:
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            part = keys[start : start + _KEYS_PER_QUERY]
            yield from self._select(f"WHERE key IN ({', '.join('?' * len(part))})", part)

    def _select(self, where: str, values: Sequence[Any]) -> Iterator[Record]:
        query = f"SELECT {', '.join(_COLUMNS)} FROM runs {where}"
        for row in self._fetch(query, values):
            facts = dict(zip(_COLUMNS, row))
            try:
                facts["config"] = _parse_config(facts["config"])
                facts["metrics"] = json.loads(facts["metrics"])
            except (ValueError, TypeError, RecursionError):
                raise UserError(f"{self.path}: {_DAMAGED}") from None
            facts["timed"] = bool(facts["timed"])
            record = Record(**facts)
            try:
                record.check()
            except ValueError:
                raise UserError(f"{self.path}: {_DAMAGED}") from None
            yield record

    def _upgrade(self) -> None:
        """Rewrite rows of older versions as the present version writes them."""
        columns = [row[1] for row in self._connection.execute("PRAGMA table_info(runs)")]
        if "timed" not in columns:
            self._connection.execute("ALTER TABLE runs ADD COLUMN timed INTEGER NOT NULL DEFAULT 0")
        rows = self._connection.execute("SELECT key, config, protocol, timed FROM runs").fetchall()
        for key, config, protocol, timed in rows:
            if _is_current(config, protocol, bool(timed)):
                continue
            for record in list(self._select("WHERE key = ?", [key])):
                self._connection.execute("DELETE FROM runs WHERE key = ?", [key])
                self._connection.execute(_INSERT, _row(record.normalised()))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._explained():
            # Waits for other writers here, and nowhere later.
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite itself ends a transaction for which there is no space.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


class RecordResults(Results):
    """Results of runs as records of a database.

    Args:
        records: the open database.
        device: where runs are made; a timed run counts for its device and machine.
        score_test: whether to score the test nodes. A search must not see them.
    """

    def __init__(
        self, records: Records | None, device: str = "auto", score_test: bool = True
    ) -> None:
        self._records = records
        self.device = device
        self.score_test = score_test

    @property
    def records(self) -> Records:
        assert self._records is not None, "workers have no access to the database"
        return self._records

    def in_worker(self) -> "RecordResults":
        return RecordResults(None, self.device, self.score_test)

    def missing(self, specs: Sequence[RunSpec]) -> list[RunSpec]:
        keys = [self._key(spec) for spec in specs]
        recorded = self.records.has_keys(keys)
        unique: dict[str, RunSpec] = {}
        for key, spec in zip(keys, specs):
            if key in recorded or (spec.timed and self._has_same_cost(spec)):
                continue
            unique.setdefault(key, spec)
        return list(unique.values())

    def _key(self, spec: RunSpec) -> str:
        graph = spec.graph
        config = spec.config.to_dict()
        where = self._where() if spec.timed else None
        return run_key(graph.fingerprint, spec.protocol, spec.seed, config, timed_on=where)

    def _has_same_cost(self, spec: RunSpec) -> bool:
        """Whether this machine has timed a run of the same cost."""
        found = self.records.find_timed(
            spec.graph.fingerprint, spec.protocol, spec.config, [spec.seed]
        )
        return any((record.device, record.machine) == self._where() for record in found)

    def _where(self) -> tuple[str, str]:
        return device_name(self.device), machine_name()

    def pack(self, result: RunResult) -> Record:
        return Record.of(result, self.score_test)

    def store(self, spec: RunSpec, packed: Record) -> str:
        self.records.add([packed])
        return ""


def _export_order(record: Record) -> tuple[Any, ...]:
    config = digest(record.config)
    where = (record.device, record.machine) if record.timed else ("", "")
    return (
        record.dataset,
        record.protocol,
        record.timed,
        where,
        record.model,
        config,
        record.seed,
        record.fingerprint,
    )


@lru_cache(maxsize=4096)
def _is_current(config: str, protocol: str, timed: bool) -> bool:
    record = Record("", "", protocol, 0, json.loads(config), {}, "", "", timed=timed)
    current = record.normalised()
    same_config = json.dumps(current.config, sort_keys=True) == config
    return same_config and current.protocol == protocol


def _row(record: Record) -> tuple[Any, ...]:
    values = [vars(record)[name] for name in _COLUMNS]
    plain = [json.dumps(v, sort_keys=True) if isinstance(v, Mapping) else v for v in values]
    return record.key, *plain


@lru_cache(maxsize=4096)
def _parse_config(config: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(config)
    return content


def _all_defaults() -> dict[str, Any]:
    """The default settings of all models: when they change, older rows are upgraded."""
    return {name: RunConfig.from_dict({"model": name}).to_dict() for name in sorted(MODELS)}


def _explain(error: sqlite3.DatabaseError, path: Path) -> str | None:
    """Return what an error of SQLite means and how to fix it; ``None`` for a mistake of ours."""
    # Text that cannot be decoded is the one error without a code.
    code = vars(error).get("sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code == sqlite3.SQLITE_CONSTRAINT_TRIGGER:
        return _DAMAGED  # our tables have no triggers
    if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
        return None
    primary = code & 0xFF  # the other bits say where it happened
    if primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        # SQLite reports the same code for many causes.
        if path.is_file() and not _is_writable(path):
            primary = sqlite3.SQLITE_READONLY
        elif shutil.disk_usage(path.parent).free < _FREE_BYTES:
            primary = sqlite3.SQLITE_FULL
    message = _MESSAGES.get(primary)
    return message and message.format(seconds=_BUSY_SECONDS, error=error)


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _retry_while_locked(action: Callable[[], Any]) -> None:
    """Repeat an action until no other process locks the database.

    SQLite does not wait by itself when it switches to write-ahead logging.
    """
    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
