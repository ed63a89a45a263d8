"""JSON, tables, node lists and databases with hostile content."""

import csv
import gzip
import io
import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from .hostile_values import hostile_number, hostile_text, hostile_value

Mutation = Callable[[random.Random, Path], None]


def json_value(rng: random.Random, path: Path) -> None:
    """Replace one value, remove it, or add another key."""
    content = json.loads(path.read_text())
    parent, key = _random_place(rng, content)
    action = rng.randrange(6)
    if action == 0 and isinstance(parent, dict):
        del parent[key]
    elif action == 1 and isinstance(parent, dict):
        parent[rng.choice(["kind", "format", "", "__class__", "extra"])] = hostile_value(rng)
    elif action == 2 and isinstance(parent[key], int | float):
        parent[key] = hostile_number(rng)
    else:
        parent[key] = hostile_value(rng)
    path.write_text(json.dumps(content))


def json_document(rng: random.Random, path: Path) -> None:
    """Replace the whole document."""
    documents = ["", "{}", "[]", "null", "0", '"x"', "{", "[" * 100_000, '{"a":' * 5000, "\ufeff{}"]
    documents += ['{"kind": "nfgnn store", "format": 1}', '{"format": 99}', "NaN", "1" * 10_000]
    path.write_text(rng.choice(documents))


def json_duplicate_key(rng: random.Random, path: Path) -> None:
    """Give a key twice, of which the second value is hostile."""
    content = json.loads(path.read_text())
    key = rng.choice(list(content))
    text = json.dumps(content)[:-1] + f", {json.dumps(key)}: {json.dumps(hostile_value(rng))}}}"
    path.write_text(text)


def toml_value(rng: random.Random, path: Path) -> None:
    """Replace a line of a TOML file, or add one."""
    lines = path.read_text().splitlines()
    values = [
        "nan",
        "inf",
        "-1",
        "1e400",
        "true",
        "[]",
        "{}",
        '""',
        '"x"',
        "1979-05-27",
        "9" * 5000,
    ]
    values += ["[[[[1]]]]", "[" * 500, "{a = 1}", "0x10", '"\\u001b[31m"', "'x'", "10**3", ""]
    settings = [i for i, line in enumerate(lines) if " = " in line and not line.startswith("#")]
    place = rng.choice(settings)
    key = lines[place].partition(" = ")[0]
    new = [
        f"{key} = {rng.choice(values)}",
        f"{rng.choice(['model', 'unknown', 'K', 'epochs', 'a.b.c'])} = {rng.choice(values)}",
        f"[{rng.choice(['full', 'full.x', 'default', 'a.b.c.d', ''])}]",
        f"[[{key}]]",
        lines[place],
    ]
    lines[place : place + rng.randrange(2)] = [rng.choice(new)]
    path.write_text("\n".join(lines) + "\n")


def table_cell(rng: random.Random, path: Path) -> None:
    """Replace some cells of a delimited text."""
    rows, dialect = _read_rows(path)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        row = rng.choice(rows[1:] or rows)
        if row:
            row[rng.randrange(len(row))] = _cell(rng)
    _write_rows(path, rows, dialect)


def table_column(rng: random.Random, path: Path) -> None:
    """Replace all cells of a column, most of them by the same value."""
    rows, dialect = _read_rows(path)
    column = rng.randrange(len(rows[0]))
    cell = _cell(rng)
    for row in rows[1:]:
        if column < len(row) and rng.random() < 0.9:
            row[column] = cell
    _write_rows(path, rows, dialect)


def table_header(rng: random.Random, path: Path) -> None:
    """Rename, repeat or remove the name of a column."""
    rows, dialect = _read_rows(path)
    header = rows[0]
    column = rng.randrange(len(header))
    names = [rng.choice(header), _cell(rng), header[column].upper(), f" {header[column]} ", "id"]
    header[column] = rng.choice([*names, "label", "split", "source", "weight"])
    _write_rows(path, rows, dialect)


def table_rows(rng: random.Random, path: Path) -> None:
    """Remove, repeat, shorten or lengthen rows."""
    rows, dialect = _read_rows(path)
    place = rng.randrange(1, max(2, len(rows)))
    action = rng.randrange(7)
    if action == 0:
        del rows[place:]
    elif action == 1:
        rows[place:place] = [list(rows[-1])] * rng.choice([1, 50])
    elif action == 2:
        del rows[-1][-1:]
    elif action == 3:
        rows[-1] += [_cell(rng)] * rng.choice([1, 1000])
    elif action == 4:
        rows = rows[1:]
    elif action == 5:
        rows[place:place] = [[]]
    else:
        rng.shuffle(rows)
    _write_rows(path, rows, dialect)


def table_encoding(rng: random.Random, path: Path) -> None:
    """Write the same table in another encoding, with other line ends, delimiters or quotes."""
    rows, _ = _read_rows(path)
    buffer = io.StringIO()
    delimiter = rng.choice([",", ";", "\t", "|", " "])
    end = rng.choice(["\n", "\r\n", "\r", "\n\n"])
    quoting = rng.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
    csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows(rows)
    encoding = rng.choice(["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"])
    _write_bytes(path, buffer.getvalue().encode(encoding, errors="replace"))


def gzip_bomb(rng: random.Random, path: Path) -> None:
    """Compress gigabytes of equal lines into a megabyte."""
    line = rng.choice([b"0,1\n", b"0\n", b"\n", b"0" * 64 + b"\n", b"0,", b"\0"])
    block = gzip.compress(line * (2**24 // len(line)), 9)
    path.write_bytes(block * 256)


def parquet_column(rng: random.Random, path: Path) -> None:
    """Write a Parquet table with one column of another type or with hostile values."""
    table = parquet.read_table(path)
    place = rng.randrange(table.num_columns)
    values = _hostile_column(rng, table.num_rows)
    name = table.column_names[place]
    if rng.random() < 0.15:
        name = rng.choice([*table.column_names, hostile_text(rng)])
    try:
        table = table.set_column(place, name, values)
    except (pa.ArrowException, UnicodeEncodeError):
        table = table.remove_column(place)
    parquet.write_table(table, path)


def parquet_rows(rng: random.Random, path: Path) -> None:
    table = parquet.read_table(path)
    first = rng.randrange(table.num_rows)
    tables = [table.slice(0, first), table.slice(first), pa.concat_tables([table, table])]
    parquet.write_table(rng.choice(tables), path)


def database_cell(rng: random.Random, path: Path) -> None:
    """Replace a value of a record."""
    with _connection(path) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
        column = rng.choice(columns)
        value = _database_value(rng, connection, column)
        where = rng.choice(["", " WHERE rowid = 1"])
        connection.execute(f'UPDATE OR IGNORE runs SET "{column}" = ?{where}', [value])


def database_schema(rng: random.Random, path: Path) -> None:
    """Change the tables themselves."""
    statements = [
        "DROP TABLE runs",
        "DROP TABLE notes",
        "DELETE FROM notes",
        "DELETE FROM runs",
        "UPDATE notes SET value = 'x'",
        "ALTER TABLE runs DROP COLUMN timed",
        "ALTER TABLE runs RENAME COLUMN metrics TO values_",
        "ALTER TABLE runs ADD COLUMN extra TEXT",
        "ALTER TABLE runs RENAME TO old; CREATE VIEW runs AS SELECT * FROM old",
        "ALTER TABLE runs RENAME TO old; CREATE TABLE runs (a, b)",
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
        "CREATE TRIGGER t BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'no'); END",
        "PRAGMA user_version = 99",
        "PRAGMA journal_mode = DELETE",
        "UPDATE runs SET version = 999",
    ]
    with _connection(path) as connection:
        connection.executescript(rng.choice(statements))


JSON: dict[str, Mutation] = {
    "replace a JSON value": json_value,
    "replace the JSON document": json_document,
    "repeat a JSON key": json_duplicate_key,
}
TOML: dict[str, Mutation] = {"replace a line of TOML": toml_value}
TABLE: dict[str, Mutation] = {
    "replace cells": table_cell,
    "replace a column": table_column,
    "change the header": table_header,
    "change rows": table_rows,
    "change the encoding": table_encoding,
}
PARQUET: dict[str, Mutation] = {
    "replace a Parquet column": parquet_column,
    "change Parquet rows": parquet_rows,
}
DATABASE: dict[str, Mutation] = {
    "replace a value of a record": database_cell,
    "change the schema": database_schema,
}
BOMB: dict[str, Mutation] = {"gzip bomb": gzip_bomb}


def _random_place(rng: random.Random, content: Any) -> tuple[Any, Any]:
    """Return a container inside a document and one of its keys."""
    parent = content
    while True:
        keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
        key = rng.choice(keys)
        child = parent[key]
        if not isinstance(child, dict | list) or not child or rng.random() < 0.3:
            return parent, key
        parent = child


def _cell(rng: random.Random) -> str:
    if rng.random() < 0.4:
        return str(hostile_number(rng)) if rng.random() < 0.8 else "1e39"
    return hostile_text(rng).encode(errors="replace").decode()


def _read_bytes(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def _read_rows(path: Path) -> tuple[list[list[str]], str]:
    text = _read_bytes(path).decode()
    delimiter = "\t" if "\t" in text[:200] else ","
    return list(csv.reader(io.StringIO(text), delimiter=delimiter)), delimiter


def _write_rows(path: Path, rows: list[list[str]], delimiter: str) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator="\n").writerows(rows)
    _write_bytes(path, buffer.getvalue().encode())


def _hostile_column(rng: random.Random, length: int) -> pa.Array:
    texts = [hostile_text(rng).encode(errors="replace").decode() for _ in range(length)]
    candidates = [
        pa.array(texts),
        pa.array([texts[0]] * length),
        pa.array([None] * length, pa.int64()),
        pa.array([None] * length),
        pa.array([float("nan")] * length),
        pa.array([rng.choice([0.0, 1e39, float("inf"), -1.0]) for _ in range(length)]),
        pa.array([2**63 + i for i in range(length)], pa.uint64()),
        pa.array([-i for i in range(length)]),
        pa.array([0] * length),
        pa.array([[1.0, 2.0]] * length),
        pa.array([[1.0] * (i % 3) for i in range(length)]),
        pa.array([{"a": i} for i in range(length)]),
        pa.array([i % 2 == 0 for i in range(length)]),
        pa.array([b"\xff\x00"] * length),
        pa.array(range(length), pa.timestamp("s")),
        pa.array(range(length), pa.date32()),
        pa.array(range(length), pa.float16()),
        pa.array(range(length)).cast(pa.decimal128(30, 3)),
        pa.array(texts).dictionary_encode(),
        pa.nulls(length),
    ]
    return rng.choice(candidates)


def _database_value(rng: random.Random, connection: sqlite3.Connection, column: str) -> Any:
    if column in ("config", "metrics") and rng.random() < 0.7:
        (text,) = connection.execute(f"SELECT {column} FROM runs").fetchone()
        content = json.loads(text)
        parent, key = _random_place(rng, content)
        parent[key] = hostile_value(rng)
        return json.dumps(content)
    value = rng.choice([hostile_text(rng), hostile_number(rng), b"\xff", "{}", "[]", "null"])
    if isinstance(value, int) and abs(value) >= 2**63:
        return str(value)
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


class _connection:
    """A connection whose changes are part of the file itself when the block ends."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)

    def __enter__(self) -> sqlite3.Connection:
        return self._connection

    def __exit__(self, *error: object) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()
