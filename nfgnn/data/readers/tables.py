"""A CSV or Parquet file → one Arrow table, with messages that name the file and the row.

Columns named in ``text`` are read from CSV as text, so that ids such as ``007`` and labels such as ``01``
stay what they are. The delimiter (comma, semicolon or tab) is taken from the header.
"""

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from nfgnn.errors import UserError

ENDINGS = (".parquet", ".csv", ".tsv")


def find_table(folder: Path, stem: str) -> Path:
    """The file ``stem.parquet`` or ``stem.csv`` in a folder."""
    found = [
        folder / f"{stem}{ending}" for ending in ENDINGS if (folder / f"{stem}{ending}").is_file()
    ]
    if not found:
        raise UserError(
            f"{folder}: there is no {stem}.csv or {stem}.parquet; a graph is a folder with nodes.csv "
            "(columns id, label and features) and edges.csv (columns source, target)."
        )
    if len(found) > 1:
        raise UserError(
            f"{folder}: both {found[0].name} and {found[1].name} are there; keep one of them."
        )
    return found[0]


def read_table(path: Path, text: Collection[str] = ()) -> pa.Table:
    """Read a table by the ending of its name."""
    try:
        table = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path, text)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(
            f"{path.name}: cannot be read as {path.suffix[1:]}: {_first_line(error)}"
        ) from None
    names = [name.strip() for name in table.column_names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(
            f"{path.name}: the column {twice[0]!r} occurs more than once; give every column its own name."
        )
    return table.rename_columns(names)


def _read_parquet(path: Path) -> pa.Table:
    return parquet.read_table(
        path, partitioning=None
    )  # else "split=train" in a folder's name would become a column


def _read_csv(path: Path, text: Collection[str]) -> pa.Table:
    with path.open("rb") as file:
        header = file.readline(2**20).decode("utf-8-sig", errors="replace").strip("\r\n")
    if not header.strip():
        raise UserError(f"{path.name}: the file is empty; its first line must name the columns.")
    delimiter = max(",;\t", key=header.count)
    names = [name.strip().strip('"') for name in header.split(delimiter)]
    types = {raw: pa.string() for raw, name in zip(header.split(delimiter), names) if name in text}
    types |= {name: pa.string() for name in text}
    failure: Exception | None = None
    for threads, newlines in ((True, False), (False, True), (False, False)):
        # The last attempt is there for its message: only a reader without threads knows the row.
        try:
            table = csv.read_csv(
                path,
                read_options=csv.ReadOptions(use_threads=threads),
                parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=newlines),
                convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=False),
            )
            return _trimmed(table)
        except pa.ArrowException as error:
            failure = error
    raise UserError(f"{path.name}: cannot be read as CSV: {_first_line(failure)}")


def _trimmed(table: pa.Table) -> pa.Table:
    """Text without the blanks around it, which hand-made files have after the commas."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(place, field, pc.utf8_trim_whitespace(table.column(place)))
    return table


def _first_line(error: object) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
