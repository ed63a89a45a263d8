"""Records as files: out to CSV or JSON, in from CSV, JSON or another database.

A database does not diff, so the committed form is ``records.csv``, one line per run in a fixed order, with
``records.configs.json`` beside it: a configuration of two dozen settings is written once there, and the CSV names it by
a digest. The database is rebuilt from the two where it is missing. JSON is one file with both, for carrying runs from
machine to machine.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from nfgnn.errors import UserError
from nfgnn.files import atomic_write
from nfgnn.training.records.database import Record, Records, _digest, up_to_date

_COLUMNS = (
    "dataset",
    "protocol",
    "model",
    "seed",
    "config",
    "fingerprint",
    "version",
    "device",
    "machine",
)
_FIRST = ("test_accuracy", "val_accuracy", "val_loss", "epochs", "seconds")
_WHOLE = ("epochs", "best_epoch", "runs_together")


def export(records: Records, path: Path) -> None:
    """Write all runs to ``path``: ``.csv`` (with ``.configs.json`` beside it) or ``.json``."""
    runs = records.all()
    configs = {_short(r.config): dict(r.config) for r in runs}
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        rows = [{**_facts(r), "metrics": dict(r.metrics)} for r in runs]
        content = {"configs": configs, "records": rows}
        atomic_write(path, json.dumps(content, indent=1, sort_keys=True) + "\n")
    elif path.suffix == ".csv":
        lines = [
            f"{json.dumps(k)}: {json.dumps(configs[k], sort_keys=True)}" for k in sorted(configs)
        ]
        atomic_write(
            _beside(path), "{\n" + ",\n".join(lines) + "\n}\n"
        )  # first: a CSV never names an unknown one
        atomic_write(path, _csv(runs))
    else:
        raise UserError(f"records are exported to .csv or .json, not to {path.name}")


def merge(records: Records, path: Path) -> int:
    """Add the runs of a ``.csv``, a ``.json`` or another database. Returns how many were new."""
    if not path.is_file():
        raise UserError(f"there is no file {path} to merge records from")
    if path.suffix not in (".csv", ".json"):
        with Records(path) as other:
            return records.add(other.all())
    try:
        return records.add(_read_csv(path) if path.suffix == ".csv" else _read_json(path))
    except (ValueError, KeyError, TypeError, AttributeError, FileNotFoundError) as error:
        raise UserError(
            f"{path} is not a file of records, or it is damaged ({error}): export it again"
        ) from None


def open_records(database: Path) -> Records:
    """The database, with what is committed beside it: ``records.sqlite`` takes up ``records.csv``, once per content."""
    records = Records(database)
    committed = database.with_suffix(".csv")
    if committed.is_file() and _beside(committed).is_file():
        content = _digest(
            [committed.read_text(encoding="utf-8"), _beside(committed).read_text(encoding="utf-8")]
        )
        if records.note("merged") != content:
            merge(records, committed)
            records.set_note("merged", content)
    return records


def _csv(runs: Iterable[Record]) -> str:
    runs = list(runs)
    measured = {name for r in runs for name in r.metrics}
    names = [*(n for n in _FIRST if n in measured), *sorted(measured - set(_FIRST))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *names])
    for r in runs:
        facts = _facts(r)
        writer.writerow([*(facts[c] for c in _COLUMNS), *(r.metrics.get(n, "") for n in names)])
    return text.getvalue()


def _read_csv(path: Path) -> list[Record]:
    configs = json.loads(_beside(path).read_text(encoding="utf-8"))
    current = lru_cache(maxsize=None)(lambda key: up_to_date(configs[key]))
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [_record(row, current(row["config"]), _numbers(row)) for row in rows]


def _read_json(path: Path) -> list[Record]:
    content = json.loads(path.read_text(encoding="utf-8"))
    configs = {key: up_to_date(config) for key, config in content["configs"].items()}
    return [_record(row, configs[row["config"]], row["metrics"]) for row in content["records"]]


def _record(row: Mapping[str, Any], config: dict[str, Any], metrics: dict[str, float]) -> Record:
    made = Record(
        row["dataset"], row["fingerprint"], row["protocol"], int(row["seed"]), config, metrics, row["device"],
        row["machine"],
    )  # fmt: skip
    return replace(made, version=int(row["version"]))


def _numbers(row: Mapping[str, str]) -> dict[str, float]:
    return {
        name: int(text) if name in _WHOLE else float(text)
        for name, text in row.items()
        if name not in _COLUMNS and text != ""
    }


def _facts(record: Record) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in _COLUMNS if name != "config"}
    return {**values, "config": _short(record.config)}


def _short(config: Mapping[str, Any]) -> str:
    return _digest(dict(config))[:12]


def _beside(path: Path) -> Path:
    return path.with_suffix(".configs.json")
