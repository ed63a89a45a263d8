"""Read CSV, TSV and Parquet tables: as a whole or in batches of rows.

Columns named in ``text`` are read from CSV as text, so that ids such as ``007`` and labels such as
``01`` keep their form. The header determines the delimiter: comma, semicolon or tab.
"""

import csv as python_csv
import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TextIO

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
_HEADER_LENGTH = 2**20  # longer header lines are cut off
# UTF-16 and UTF-32 have zeros, and "surrogateescape" writes bytes that are not UTF-8 in this way.
_NOT_UTF_8 = re.compile("[\0\udc80-\udcff]")
# A cell in quotes, which may end in another line. Quotes inside other cells have no meaning.
_QUOTED = re.compile(r'(?:^|(?<=[,;\t ]))"(?:[^"]|"")*"?')


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
            names = _csv_header(path).names
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


@dataclass(frozen=True)
class _Header:
    """The header of a CSV file."""

    names: list[str]
    """The names of the columns, without blanks around them."""
    delimiter: str
    lines: int
    """Number of lines; there are several if a quoted name contains a line break."""
    length: int
    """Number of bytes, at least."""
    has_rows: bool
    """Whether anything follows the header."""


def _csv_header(path: Path) -> _Header:
    """Read the header of a CSV file.

    Arrow receives the names from here, so that all ways of reading agree on them.
    """
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        first = file.readline(_HEADER_LENGTH)
        if not first.strip():
            _refuse_blank_line(file, path)
        # A delimiter inside quotes is a part of a name.
        delimiter = max(",;\t", key=_QUOTED.sub("", first).count)
        lines = _Lines(file, first, path)
        cells = _cells(lines, delimiter, path)
        has_rows = bool(file.read(1))
    names = [cell.strip() for cell in cells]
    return _Header(names, delimiter, lines.count, lines.length, has_rows)


def _refuse_blank_line(file: TextIO, path: Path) -> NoReturn:
    """Raise an error about a file without a header in its first line."""
    if file.read(_HEADER_LENGTH).strip():
        raise UserError(
            f"{path.name}: the first line is blank; remove it, because the first line must name "
            "the columns."
        )
    raise UserError(f"{path.name}: the file is empty; its first line must name the columns.")


class _Lines:
    """Iterate over the lines of a header, and count them.

    Args:
        file: the file after the first line.
        first: the first line.
        path: the path of the file, for error messages.
    """

    def __init__(self, file: TextIO, first: str, path: Path) -> None:
        self.file = file
        self.first = first
        self.path = path
        self.count = 0
        self.length = 0

    def __iter__(self) -> Iterator[str]:
        line = self.first
        while line:
            if _NOT_UTF_8.search(line):  # other checks would quote the line in full
                raise UserError(
                    f"{self.path.name}: the header is not UTF-8 text; save the file as UTF-8."
                )
            self.count += 1
            self.length += len(line.encode())
            yield line
            line = self.file.readline(_HEADER_LENGTH)
        # The module csv would take the rest of the file for a name.
        raise python_csv.Error("a quotation mark is not closed")


def _cells(lines: _Lines, delimiter: str, path: Path) -> list[str]:
    """Return the cells of a header. Blanks before a quotation mark are ignored."""
    try:
        return next(python_csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
    except python_csv.Error:
        if lines.count > 1:
            raise UserError(
                f"{path.name}: a quotation mark in the first line is not closed; add the second "
                "one or remove the first."
            ) from None
        # A cell is longer than the module accepts. Its limit can only be raised for the process.
        return [cell.strip().strip('"') for cell in lines.first.split(delimiter)]


def _read_csv(path: Path, text: Collection[str]) -> pa.Table:
    header = _csv_header(path)
    if not header.has_rows:
        return _without_rows(header.names, text)
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(text, pa.string()), null_values=NULL_VALUES
    )
    failure: pa.ArrowException | None = None
    # The third attempt is for its message: only this way of reading reports the row of an error.
    for threads, newlines in ((True, False), (False, True), (False, False)):
        try:
            table = csv.read_csv(
                path,
                csv.ReadOptions(
                    use_threads=threads, column_names=header.names, skip_rows=header.lines
                ),
                csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=newlines),
                convert,
            )
            return _trimmed(table)
        except pa.ArrowException as error:
            failure = error
    assert failure is not None
    raise failure


def _without_rows(names: list[str], text: Collection[str]) -> pa.Table:
    """Return a table without rows, with the types that Arrow gives to its columns."""
    columns = [pa.array([], pa.string() if name in text else pa.null()) for name in names]
    return pa.Table.from_arrays(columns, names)


def _csv_batches(
    path: Path, columns: Collection[str], rows: int, text: Collection[str]
) -> Iterator[pa.Table]:
    header = _csv_header(path)
    if not header.has_rows:
        return
    block_size = min(max(64 * rows, 2**16), 2**26)  # bytes of text
    with csv.open_csv(
        path,
        csv.ReadOptions(
            use_threads=False,
            block_size=max(block_size, 2 * header.length),
            column_names=header.names,
            skip_rows=header.lines,
        ),
        csv.ParseOptions(delimiter=header.delimiter),
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
