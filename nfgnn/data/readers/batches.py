"""A CSV or Parquet file in batches of rows, for files that do not fit into memory."""

from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

from nfgnn.errors import UserError


def column_names(path: Path) -> list[str]:
    """The names of the columns of a table."""
    if path.suffix == ".parquet":
        return [str(name) for name in parquet.read_schema(path).names]
    return [name.strip().strip('"') for name in _header(path)[0]]


def count_rows(path: Path) -> int:
    """The number of rows: from the footer of a Parquet file, by a look at every line of a CSV file."""
    if path.suffix == ".parquet":
        return int(parquet.read_metadata(path).num_rows)
    return sum(batch.num_rows for batch in read_batches(path, column_names(path)[:1], 2**20))


def read_batches(
    path: Path, columns: Collection[str], rows: int, types: dict[str, pa.DataType] | None = None
) -> Iterator[pa.Table]:
    """Some columns of a table, at most about ``rows`` rows at a time."""
    try:
        if path.suffix == ".parquet":
            with parquet.ParquetFile(path, pre_buffer=False) as file:
                for batch in file.iter_batches(rows, columns=list(columns), use_threads=False):
                    yield pa.Table.from_batches([batch])
        else:
            yield from _csv_batches(path, columns, rows, types or {})
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"{path.name}: cannot be read: {str(error).strip().splitlines()[0][:300]}"
        ) from None
    finally:
        pa.default_memory_pool().release_unused()  # else Arrow keeps what it has read into


def _csv_batches(
    path: Path, columns: Collection[str], rows: int, types: dict[str, pa.DataType]
) -> Iterator[pa.Table]:
    _, delimiter = _header(path)
    size = min(max(64 * rows, 2**16), 2**26)  # bytes of text at a time
    with csv.open_csv(
        path,
        read_options=csv.ReadOptions(
            use_threads=False, block_size=size, column_names=column_names(path), skip_rows=1
        ),
        parse_options=csv.ParseOptions(delimiter=delimiter),
        convert_options=csv.ConvertOptions(column_types=types, include_columns=list(columns)),
    ) as reader:
        for batch in reader:
            table = pa.Table.from_batches([batch])
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows)


def _header(path: Path) -> tuple[list[str], str]:
    with path.open("rb") as file:
        line = file.readline(2**20).decode("utf-8-sig", errors="replace").strip("\r\n")
    if not line.strip():
        raise UserError(f"{path.name}: the file is empty; its first line must name the columns.")
    delimiter = max(",;\t", key=line.count)
    return line.split(delimiter), delimiter
