"""Read and write records as files: Parquet, CSV and JSON.

A database does not diff, so the committed form is ``records.parquet``: one row per run in a fixed
order, compressed, with the same bytes for the same runs. Column ``config`` holds the configuration
as JSON; Parquet's dictionary encoding stores each distinct one once. The database is rebuilt from
this file where it is missing.

``.csv`` is the older form of the same table. It names a configuration by a digest, and
``.configs.json`` beside it holds the configurations. ``.json`` is one file with both.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from nfgnn.errors import UserError
from nfgnn.files import atomic_write, require_regular_file
from nfgnn.training.records.database import Records
from nfgnn.training.records.record import Record, digest, up_to_date

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
    "timed",
)
_FIRST_METRICS = ("test_accuracy", "val_accuracy", "val_loss", "epochs", "seconds")
_INTEGER_METRICS = ("epochs", "best_epoch", "runs_together", "restarts", "dead")


def export_records(records: Records, path: Path) -> None:
    """Write all runs to ``path``.

    Args:
        records: the database.
        path: a file that ends in ``.parquet``, ``.csv`` (``.configs.json`` is written beside it)
            or ``.json``.
    """
    runs = records.all()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        _write_parquet(runs, path)
    elif path.suffix == ".csv":
        _write_csv(runs, path)
    elif path.suffix == ".json":
        rows = [{**_columns(run), "metrics": dict(run.metrics)} for run in runs]
        content = {"configs": _configs(runs), "records": rows}
        atomic_write(path, json.dumps(content, indent=1, sort_keys=True) + "\n")
    else:
        raise UserError(
            f"cannot export records to {path.name}: name a .parquet, .csv or .json file"
        )


def merge_records(records: Records, path: Path) -> int:
    """Add the runs of a ``.parquet``, ``.csv`` or ``.json`` file or of another database.

    Returns:
        The number of runs that were new.
    """
    if not path.is_file():
        raise UserError(f"there is no file {path} to merge records from")
    readers = {".parquet": _read_parquet, ".csv": _read_csv, ".json": _read_json}
    if path.suffix not in readers:
        with Records(path) as other:
            return records.add(other.all())
    try:
        for part in _parts(path):
            require_regular_file(part)
        return records.add(readers[path.suffix](path))
    except UserError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError) as error:
        raise UserError(
            f"{path} does not hold records, or it is damaged ({error}): export it again"
        ) from None


def open_records(database: Path) -> Records:
    """Open a database and add the runs of the files beside it.

    ``records.sqlite`` takes up ``records.parquet`` and ``records.csv``, each once per content.
    """
    records = Records(database)
    for path in _files_beside(database):
        parts = _parts(path)
        content = hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()
        name = f"merged {path.name}"
        if records.note(name) != content:
            merge_records(records, path)
            records.set_note(name, content)
    return records


def has_records(database: Path) -> bool:
    """Whether :func:`open_records` would find a database or files to take up."""
    return database.exists() or bool(_files_beside(database))


def _files_beside(database: Path) -> list[Path]:
    """Return the complete files that a database takes up."""
    files = (database.with_suffix(".parquet"), database.with_suffix(".csv"))
    return [path for path in files if all(part.is_file() for part in _parts(path))]


def _write_parquet(runs: Sequence[Record], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [_columns(run) for run in runs]
    table: dict[str, Any] = {name: [row[name] for row in rows] for name in _COLUMNS}
    table["config"] = [json.dumps(dict(run.config), sort_keys=True) for run in runs]
    for name in _metric_names(runs):
        values = [run.metrics.get(name) for run in runs]
        whole = all(value is None or isinstance(value, int) for value in values)
        table[name] = pa.array(values, pa.int64() if whole else pa.float64())
    # Another version of pyarrow writes other bytes, so a file with the same runs stays as it is.
    if path.is_file() and _holds(path, pa.table(table)):
        return
    text = [name for name in _COLUMNS if name not in ("seed", "version")]
    file = io.BytesIO()
    pq.write_table(
        pa.table(table), file, compression="zstd", compression_level=19, use_dictionary=text
    )
    atomic_write(path, file.getvalue())


def _holds(path: Path, table: Any) -> bool:
    import pyarrow.parquet as pq

    try:
        return bool(pq.read_table(path).equals(table))
    except (ValueError, OSError):  # damaged
        return False


def _read_parquet(path: Path) -> list[Record]:
    import pyarrow.parquet as pq

    current = lru_cache(maxsize=None)(lambda text: up_to_date(json.loads(text)))
    runs = []
    for row in pq.read_table(path).to_pylist():
        metrics = {
            name: value for name, value in row.items() if name not in _COLUMNS and value is not None
        }
        runs.append(_record(row, current(row["config"]), metrics))
    return runs


def _write_csv(runs: Sequence[Record], path: Path) -> None:
    configs = _configs(runs)
    lines = [f"{json.dumps(k)}: {json.dumps(configs[k], sort_keys=True)}" for k in sorted(configs)]
    names = _metric_names(runs)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *names])
    for run in runs:
        metrics = [run.metrics.get(name, "") for name in names]
        writer.writerow([*_columns(run).values(), *metrics])
    # The configurations come first, so that the table never names an unknown one.
    atomic_write(_configs_file(path), "{\n" + ",\n".join(lines) + "\n}\n")
    atomic_write(path, text.getvalue())


def _read_csv(path: Path) -> list[Record]:
    configs = json.loads(_configs_file(path).read_text(encoding="utf-8"))
    current = lru_cache(maxsize=None)(lambda key: up_to_date(configs[key]))
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [_record(row, current(row["config"]), _parse_metrics(row)) for row in rows]


def _parse_metrics(row: Mapping[str, str]) -> dict[str, float]:
    return {
        name: int(text) if name in _INTEGER_METRICS else float(text)
        for name, text in row.items()
        if name not in _COLUMNS and text != ""
    }


def _read_json(path: Path) -> list[Record]:
    content = json.loads(path.read_text(encoding="utf-8"))
    configs = {key: up_to_date(config) for key, config in content["configs"].items()}
    return [_record(row, configs[row["config"]], row["metrics"]) for row in content["records"]]


def _record(row: Mapping[str, Any], config: dict[str, Any], metrics: dict[str, float]) -> Record:
    record = Record(
        dataset=row["dataset"],
        fingerprint=row["fingerprint"],
        protocol=row["protocol"],
        seed=int(row["seed"]),
        config=config,
        metrics=metrics,
        device=row["device"],
        machine=row["machine"],
        version=int(row["version"]),
        timed=_parse_flag(row.get("timed")),
    )
    record.check()
    return record.with_plain_protocol()


def _parse_flag(value: Any) -> bool:
    """Parse the column ``timed``, which older files do not have."""
    return value in (True, "True")


def _columns(run: Record) -> dict[str, Any]:
    """The columns of a run that are no metrics, with the digest of its configuration."""
    values = {name: vars(run).get(name, run.model) for name in _COLUMNS}
    return {**values, "config": _config_digest(run.config)}


def _metric_names(runs: Iterable[Record]) -> list[str]:
    measured = {name for run in runs for name in run.metrics}
    first = [name for name in _FIRST_METRICS if name in measured]
    return [*first, *sorted(measured - set(first))]


def _configs(runs: Iterable[Record]) -> dict[str, dict[str, Any]]:
    return {_config_digest(run.config): dict(run.config) for run in runs}


def _config_digest(config: Mapping[str, Any]) -> str:
    return digest(dict(config))[:12]


def _parts(path: Path) -> list[Path]:
    """Return the files that hold the records of ``path``."""
    return [path, _configs_file(path)] if path.suffix == ".csv" else [path]


def _configs_file(path: Path) -> Path:
    return path.with_suffix(".configs.json")
