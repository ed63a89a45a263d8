"""Read CSV, TSV and Parquet tables: as a whole or in batches of rows.

Columns named in ``text`` are read from CSV as text, so that ids such as ``007`` and labels such as
``01`` keep their form. The header determines the delimiter: comma, semicolon or tab.
"""

import csv as python_csv
import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from nfgnn.data.labels import MISSING
from nfgnn.data.memory import require_memory
from nfgnn.data.messages import few, first_line
from nfgnn.errors import UserError, system_error

ENDINGS = (".parquet", ".csv", ".tsv")
MISSING_FEATURES = frozenset((*MISSING, "?"))
"""Words that stand for a missing value in a column of features."""
NULL_VALUES = sorted({*csv.ConvertOptions().null_values, *MISSING_FEATURES})
"""The same for columns of numbers, dates, times and booleans, with the words that Arrow knows."""
_HEADER_BYTES = 2**20  # longer header lines are cut off


def find_table(folder: Path, stem: str) -> Path:
    """Return the file ``stem.parquet``, ``stem.csv`` or ``stem.tsv`` in a folder."""
    candidates = [folder / f"{stem}{ending}" for ending in ENDINGS]
    found = [path for path in candidates if path.is_file()]
    if not found:
        tables = [path for path in sorted(folder.glob("*")) if path.suffix in ENDINGS]
        others = [path.name for path in tables if path.stem not in ("nodes", "edges")]
        fix = f"rename one of {few(others)}" if others else "create it"
        raise UserError(
            f"{folder}: there is no {stem}.csv or {stem}.parquet; {fix}: a graph is a folder "
            "with nodes.csv (columns id, label and features) and edges.csv (columns source, "
            "target). The option --column accepts other names of columns."
        )
    if len(found) > 1:
        raise UserError(
            f"{folder}: contains both {found[0].name} and {found[1].name}; keep one of them."
        )
    return found[0]


def read_table(path: Path, text: Collection[str] = ()) -> pa.Table:
    """Read a table into memory."""
    with _errors_name(path):
        require_memory(_least_bytes(path), path.name)
        if path.suffix == ".parquet":
            # With partitioning "split=train" in a folder's name would become a column.
            table = parquet.read_table(path, partitioning=None)
        else:
            table = _read_csv(path, text)
    names = [name.strip() for name in table.column_names]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{path.name}: the column {name!r} occurs more than once; rename one.")
    return table.rename_columns(names)


def read_batches(
    path: Path, columns: Collection[str], rows: int, text: Collection[str] = ()
) -> Iterator[pa.Table]:
    """Iterate over some columns of a table in batches of at most ``rows`` rows."""
    with _errors_name(path):
        try:
            if path.suffix == ".parquet":
                with parquet.ParquetFile(path, pre_buffer=False) as file:
                    for batch in file.iter_batches(rows, columns=list(columns), use_threads=False):
                        yield pa.Table.from_batches([batch])
            else:
                yield from _csv_batches(path, columns, rows, text)
        finally:
            pa.default_memory_pool().release_unused()  # Arrow would keep its buffers


def column_names(path: Path) -> list[str]:
    """Return the names of the columns of a table."""
    with _errors_name(path):
        if path.suffix == ".parquet":
            names = [str(name) for name in parquet.read_schema(path).names]
        else:
            names = [_plain(cell) for cell in _csv_header(path)[0]]
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise UserError(f"{path.name}: there are {count} columns {name!r}; rename all but one.")
    return names


def node_columns(folder: Path) -> list[str]:
    """Return the names of the columns of the nodes in a folder of tables."""
    return column_names(find_table(folder, "nodes"))


def count_rows(path: Path) -> int:
    """Return the number of rows: from the footer of a Parquet file, by reading a CSV file."""
    if path.suffix == ".parquet":
        with _errors_name(path):
            return int(parquet.read_metadata(path).num_rows)
    return sum(batch.num_rows for batch in read_batches(path, column_names(path)[:1], 2**20))


def estimate_bytes(path: Path) -> int:
    """Estimate, rather too high, the memory to parse a table and to number and sort its rows."""
    if path.suffix == ".parquet":
        return 20 * count_rows(path) * max(5, len(column_names(path)))
    return 12 * path.stat().st_size


def _least_bytes(path: Path) -> int:
    """Return the memory that a table takes at least.

    A Parquet file of a few bytes can hold millions of equal values.
    """
    if path.suffix != ".parquet":
        return path.stat().st_size
    metadata = parquet.read_metadata(path)
    num_values = int(metadata.num_rows * metadata.num_columns)
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    unpacked = sum(max(0, group.total_byte_size) for group in groups)
    return max(4 * num_values, int(unpacked))


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """Turn errors of Arrow and of the file system into one that names the file."""
    try:
        yield
    except UserError:
        raise
    except PermissionError as error:
        raise system_error(error, path) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        kind = "Parquet" if path.suffix == ".parquet" else "CSV"
        reason = first_line(error, 300)
        raise UserError(
            f"{path.name}: cannot be read as {kind}: {reason}; correct the file or create it again."
        ) from None


def _csv_header(path: Path) -> tuple[list[str], str]:
    """Return the cells of the first line and the delimiter."""
    with path.open("rb") as file:
        line = file.readline(_HEADER_BYTES).decode("utf-8-sig", errors="replace").strip("\r\n")
    if not line.strip():
        raise UserError(f"{path.name}: the file is empty; its first line must name the columns.")
    if "\0" in line:  # UTF-16 or UTF-32, which other checks would quote in full
        raise UserError(f"{path.name}: the first line is not UTF-8 text; save the file as UTF-8.")
    line = line.partition("\r")[0]  # some files end their lines with carriage returns only
    # A delimiter inside quotes is a part of a name.
    delimiter = max(",;\t", key=re.sub(r'"[^"]*"', "", line).count)
    return _cells(line, delimiter), delimiter


def _cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line of CSV."""
    try:
        return next(python_csv.reader([line], delimiter=delimiter))
    except python_csv.Error:
        # A cell is longer than the module accepts. Its limit can only be raised for the process.
        return line.split(delimiter)


def _plain(cell: str) -> str:
    """Return the name of a column without blanks and quotes."""
    return cell.strip().strip('"')


def _read_csv(path: Path, text: Collection[str]) -> pa.Table:
    header, delimiter = _csv_header(path)
    # Arrow knows a column by its cell in the header, blanks included.
    as_text = [cell for cell in header if _plain(cell) in text]
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys([*as_text, *text], pa.string()), null_values=NULL_VALUES
    )
    failure: pa.ArrowException | None = None
    # The third attempt is for its message: only this way of reading reports the row of an error.
    for threads, newlines in ((True, False), (False, True), (False, False)):
        try:
            table = csv.read_csv(
                path,
                csv.ReadOptions(use_threads=threads),
                csv.ParseOptions(delimiter=delimiter, newlines_in_values=newlines),
                convert,
            )
            return _trimmed(table)
        except pa.ArrowException as error:
            failure = error
    assert failure is not None
    raise failure


def _csv_batches(
    path: Path, columns: Collection[str], rows: int, text: Collection[str]
) -> Iterator[pa.Table]:
    header, delimiter = _csv_header(path)
    with csv.open_csv(
        path,
        csv.ReadOptions(
            use_threads=False,
            block_size=min(max(64 * rows, 2**16), 2**26),  # bytes of text
            column_names=[_plain(cell) for cell in header],
            skip_rows=1,
        ),
        csv.ParseOptions(delimiter=delimiter),
        csv.ConvertOptions(
            column_types=dict.fromkeys(text, pa.string()),
            include_columns=list(columns),
            null_values=NULL_VALUES,
        ),
    ) as reader:
        for batch in reader:
            table = _trimmed(pa.Table.from_batches([batch]))
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows)


def _trimmed(table: pa.Table) -> pa.Table:
    """Remove blanks around text, which hand-written files have after the delimiters."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(place, field, pc.utf8_trim_whitespace(table.column(place)))
    return table
