"""Encode the feature columns of a table as numbers: gaps, categories, booleans and dates.

:func:`encode_table` decides how every column of a table is encoded. The :class:`TableEncoding` is
stored with a trained model, so that new rows get the same features.

- Numbers and booleans stay as they are. A gap becomes the median, and a further column
  ``NAME missing`` is 1 there. Training replaces this median by that of the training nodes
  (:class:`nfgnn.data.FeatureScaling`).
- Dates become days since the earliest one. Times of day and durations become days.
- Text becomes one column ``NAME=VALUE`` per category. An unknown category is zero in all of them.
  More than :data:`MAX_CATEGORIES` categories are refused, because they are usually names or free
  text, and so are numbers with a decimal comma, unless the user declares the column as categorical.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from nfgnn.data.memory import require_memory
from nfgnn.data.messages import counted, few, quoted
from nfgnn.data.problems import Problems
from nfgnn.data.readers.columns import (
    is_decimal_comma,
    numbers,
    unfold_lists,
    use_decimal_point,
)
from nfgnn.data.readers.tables import MISSING_FEATURES
from nfgnn.errors import UserError

MAX_CATEGORIES = 50
"""Text columns with more different values must be declared as categorical."""
_MISSING_TEXT = pa.array(sorted(MISSING_FEATURES))
_MICROSECONDS_PER_DAY = 86_400_000_000
_BLOCK = 4096  # rows
_OTHER_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\b")  # not read as a date
_SHOWN = 8  # columns


@dataclass(frozen=True)
class ColumnEncoding:
    """How one column becomes features."""

    name: str
    kind: str = "number"
    """``"number"``, ``"date"``, ``"category"``, or ``"empty"`` for a column without any value."""
    categories: tuple[str, ...] = ()
    origin: float = 0.0
    """The earliest date, in days since 1970-01-01."""
    median: float = 0.0
    """What gaps of later tables are filled with."""
    indicator: bool = False
    """Whether a further column marks the gaps."""

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        if self.kind == "category":
            names = [f"{self.name}={category}" for category in self.categories]
        elif self.kind == "empty":
            names = []
        else:
            names = [self.name]
        if self.indicator:
            names.append(f"{self.name} missing")
        return names


@dataclass(frozen=True)
class TableEncoding:
    """How the columns of a table become features."""

    columns: tuple[ColumnEncoding, ...]

    @classmethod
    def from_json(cls, content: Sequence[Mapping[str, Any]]) -> "TableEncoding":
        """Return the encoding that :meth:`to_json` describes."""
        columns = [
            ColumnEncoding(**{**values, "categories": tuple(values["categories"])})
            for values in content
        ]
        return cls(tuple(columns))

    def to_json(self) -> list[dict[str, Any]]:
        """Return one dictionary per column."""
        return [asdict(column) for column in self.columns]

    @property
    def is_plain(self) -> bool:
        """Whether every column is a number without gaps, so that nothing is encoded."""
        return all(column.kind == "number" and not column.indicator for column in self.columns)

    @property
    def feature_names(self) -> list[str]:
        """The names of all features, in their order."""
        return [name for column in self.columns for name in column.feature_names]

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that are read as text, because their categories are no typed values."""
        return tuple(
            column.name
            for column in self.columns
            if column.kind == "category" and not _are_typed(column.categories)
        )

    def imputed(self) -> tuple[list[int], list[int]]:
        """Return the places of the features with gaps and of the features that mark the gaps."""
        features = []
        indicators = []
        place = 0
        for column in self.columns:
            width = len(column.feature_names)
            if column.indicator and column.kind != "category":
                features.append(place)
                indicators.append(place + width - 1)
            place += width
        return features, indicators

    def description(self) -> list[str]:
        """Return one line that says what is encoded, or no line for plain numbers."""
        parts = [text for text in map(_describe, self.columns) if text]
        if not parts:
            return []
        shown = "; ".join(parts[:_SHOWN])
        more = f"; … ({len(parts)} in all)" if len(parts) > _SHOWN else ""
        return [f"encoded {counted(len(parts), 'column')}: {shown}{more}"]


@dataclass(frozen=True)
class EncodedTable:
    """The features of a table."""

    x: Tensor
    """float32 [rows, features]."""
    names: list[str]
    """The names of the features."""
    encoding: TableEncoding | None
    """How the columns were encoded; ``None`` for a table of numbers without gaps."""
    notes: list[str]
    """What was done, for the user."""


def encode_table(
    table: pa.Table,
    names: Sequence[str],
    file: str,
    categorical: Collection[str] = (),
    encoding: TableEncoding | None = None,
) -> EncodedTable:
    """Encode columns of a table. All errors are reported together.

    Args:
        table: the table.
        names: the columns that are features.
        file: the file, for error messages.
        categorical: columns that hold categories, whatever their type and number.
        encoding: that of an earlier table, to be used again. Columns that it does not know are
            ignored.
    """
    table = unfold_lists(table, list(names), file)
    problems = Problems()
    decoded: list[_Values] = []
    columns = []
    if encoding is None:
        for name in table.column_names:
            with problems.collect():
                column, values = _learn_column(table[name], name, file, name in categorical)
                columns.append(column)
                decoded.append(values)
    else:
        _require_columns(encoding, table.column_names, file)
        columns = list(encoding.columns)
        for column in columns:
            with problems.collect():
                decoded.append(_decode(table[column.name], column, file))
    problems.raise_all()
    learned = TableEncoding(tuple(columns))
    if encoding is None and not learned.is_plain:
        medians = [_with_median(column, values) for column, values in zip(columns, decoded)]
        learned = TableEncoding(tuple(medians))
    _refuse_repeated(learned.feature_names, file)
    matrix, notes = _write(learned, decoded, table.num_rows, encoding is None, file)
    if encoding is None:
        notes = learned.description()
    return EncodedTable(
        torch.from_numpy(matrix),
        learned.feature_names,
        None if learned.is_plain else learned,
        notes,
    )


# Of a column that is not empty: numbers with NaN for gaps, or text with null for gaps.
_Values = Any


def _require_columns(encoding: TableEncoding, found: list[str], file: str) -> None:
    missing = [column.name for column in encoding.columns if column.name not in found]
    if missing:
        listed = few([repr(name) for name in missing])
        raise UserError(
            f"{file}: there is no column {listed}, which the model was trained with; add it."
        )


def _refuse_repeated(names: list[str], file: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise UserError(
            f"{file}: several columns become a feature {repeated[0]!r}; rename one of them."
        )


def _learn_column(
    column: pa.ChunkedArray, name: str, file: str, categorical: bool
) -> tuple[ColumnEncoding, _Values]:
    """Return how a column is encoded, without its median, and its values."""
    column = _plain_type(column)
    if categorical or _is_text(column.type):
        column = _as_text(column, name, file)
    if column.null_count == len(column):
        return ColumnEncoding(name, "empty"), np.empty(0)
    if _is_text(column.type):
        distinct = _categories(column, name, file, categorical)
        if distinct is not None:
            gaps = bool(column.null_count)
            return ColumnEncoding(name, "category", distinct, indicator=gaps), column
    values = _numbers(column, name, file)
    gaps = _has_gaps(values)
    if gaps and np.isnan(values).all():
        return ColumnEncoding(name, "empty"), np.empty(0)
    if not _is_date(column.type):
        return ColumnEncoding(name, indicator=gaps), values
    origin = float(np.nanmin(values))
    return ColumnEncoding(name, "date", origin=origin, indicator=gaps), values - origin


def _categories(
    column: pa.ChunkedArray, name: str, file: str, categorical: bool
) -> tuple[str, ...] | None:
    """Return the categories of a text column, or ``None`` if it holds numbers."""
    counts = pc.value_counts(column.drop_null())
    distinct = counts.field("values").to_pylist()
    if categorical:
        return tuple(sorted(distinct))
    occurrences = counts.field("counts").to_numpy()
    numeric = np.array([_is_number(value) for value in distinct])
    # A few words among numbers are mistakes in a column of numbers, and reported as such.
    if occurrences[numeric].sum() > 0.5 * occurrences.sum():
        return None
    decimal = np.array([is_decimal_comma(value, or_thousands=True) for value in distinct])
    example = next(filter(is_decimal_comma, distinct), None)
    # Without an example the commas may separate thousands, which are accepted as categories.
    if example is not None and occurrences[numeric | decimal].sum() > 0.5 * occurrences.sum():
        raise UserError(
            f"{file}: column {quoted(name)} holds numbers with a decimal comma; "
            f"{use_decimal_point(example)}, or pass --column category={name} to read them as text."
        )
    if len(distinct) > MAX_CATEGORIES:
        as_date = "write dates as 2024-05-31, " if _OTHER_DATE.match(distinct[0]) else ""
        raise UserError(
            f"{file}: column {quoted(name)} holds text with {len(distinct):,} different values, "
            f"such as {distinct[0][:40]!r}; {as_date}drop it with --column drop={name}, or encode "
            f"it as {len(distinct):,} features with --column category={name}."
        )
    return tuple(sorted(distinct))


def _decode(column: pa.ChunkedArray, encoding: ColumnEncoding, file: str) -> _Values:
    """Return the values of a column that an earlier table had, too."""
    column = _plain_type(column)
    if encoding.kind == "empty":
        return np.empty(0)
    if encoding.kind == "category" or _is_text(column.type):
        column = _as_text(column, encoding.name, file)
    if encoding.kind == "category":
        return column
    if column.null_count == len(column):
        return np.full(len(column), np.nan)
    if encoding.kind == "date" and not _is_date(column.type):
        raise UserError(
            f"{file}: column {quoted(encoding.name)} has type {column.type}; the model was trained "
            "with dates."
        )
    return _numbers(column, encoding.name, file) - encoding.origin


def _with_median(encoding: ColumnEncoding, values: _Values) -> ColumnEncoding:
    if encoding.kind not in ("number", "date"):
        return encoding
    return replace(encoding, median=float(np.nanmedian(values)))


def _write(
    encoding: TableEncoding, decoded: list[_Values], rows: int, is_new: bool, file: str
) -> tuple[np.ndarray, list[str]]:
    """Return the features and notes about gaps and categories that are new."""
    width = len(encoding.feature_names)
    require_memory(4 * rows * width, file)
    matrix = np.zeros((rows, width), dtype=np.float32)
    numeric: list[tuple[int, np.ndarray]] = []
    notes: list[str] = []
    place = 0
    for column, values in zip(encoding.columns, decoded):
        end = place + len(column.feature_names)
        if column.kind == "category":
            notes += _write_categories(values, column, matrix[:, place:end])
        elif column.kind != "empty":
            # A table that the encoding was not made for may have gaps in any column.
            if column.indicator or (not is_new and _has_gaps(values)):
                gaps = np.isnan(values)
                values = np.where(gaps, column.median, values)
                notes += _mark_gaps(gaps, column, matrix[:, end - 1])
            numeric.append((place, values))
        place = end
    # Values that float32 cannot hold become infinite, and validation reports them.
    with np.errstate(over="ignore"):
        # A block of rows stays in the processor's cache while its columns are written.
        for start in range(0, rows, _BLOCK):
            block = matrix[start : start + _BLOCK]
            for place, values in numeric:
                block[:, place] = values[start : start + _BLOCK]
    return matrix, notes


def _mark_gaps(gaps: np.ndarray, encoding: ColumnEncoding, last: np.ndarray) -> list[str]:
    if encoding.indicator:
        last[gaps] = 1
        return []
    return [
        f"column {quoted(encoding.name)}: filled {counted(int(gaps.sum()), 'gap')} with the median "
        f"{encoding.median:.4g}"
    ]


def _write_categories(
    text: pa.ChunkedArray, encoding: ColumnEncoding, out: np.ndarray
) -> list[str]:
    """Write one column per category to ``out`` and report unknown categories."""
    codes = pc.index_in(text, value_set=pa.array(encoding.categories, pa.string()))
    places = codes.fill_null(-1).to_numpy()
    known = np.flatnonzero(places >= 0)
    out[known, places[known]] = 1
    gaps = pc.is_null(text).to_numpy()
    if encoding.indicator:
        out[gaps, -1] = 1
    unknown = (places < 0) & ~gaps
    if not unknown.any():
        return []
    names = pc.unique(text.filter(pa.array(unknown))).to_pylist()
    return [
        f"column {quoted(encoding.name)}: {counted(int(unknown.sum()), 'row')} with a category "
        f"that the model does not know ({few(names)}); all its features are 0 there"
    ]


def _describe(column: ColumnEncoding) -> str:
    """Return what was done to a column; an empty text for plain numbers."""
    gaps = "gaps as a further feature" if column.indicator else ""
    if column.kind == "empty":
        return f"{column.name} left out (empty)"
    if column.kind == "category":
        parts = [f"{len(column.categories)} categories", gaps]
    elif column.kind == "date":
        earliest = np.datetime64(0, "D") + int(np.floor(column.origin))
        parts = [f"days since {earliest}", gaps and f"gaps as the median, {gaps}"]
    elif column.indicator:
        parts = [f"gaps as the median, {gaps}"]
    else:
        return ""
    return f"{column.name} ({', '.join(part for part in parts if part)})"


def _plain_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        return pc.cast(column, column.type.value_type)
    return column


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_date(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _as_text(column: pa.ChunkedArray, name: str, file: str) -> pa.ChunkedArray:
    """Return trimmed text, null where a word means that the value is missing."""
    try:
        text = pc.utf8_trim_whitespace(pc.cast(column, pa.string()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise UserError(
            f"{file}: column {quoted(name)} of type {column.type} cannot be used as a category."
        ) from None
    return pc.if_else(pc.is_in(text, value_set=_MISSING_TEXT), pa.scalar(None, pa.string()), text)


def _are_typed(categories: Sequence[str]) -> bool:
    """Whether categories are whole numbers, numbers or booleans in the form that Arrow writes.

    A column of such values may have had a type. Other tables spell them in another way, such as
    ``True`` or ``1.0``, and only a column that is read with its type has the same text then.
    """
    text = pa.array(categories, pa.string())
    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        try:
            written = pc.cast(pc.cast(text, kind), pa.string())
        except pa.ArrowInvalid:
            continue
        if written.equals(text):
            return True
    return False


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _has_gaps(values: np.ndarray) -> bool:
    if values.dtype.kind != "f" or not np.isnan(values.sum()):
        return False
    return bool(np.isnan(values).any())


def _numbers(column: pa.ChunkedArray, name: str, file: str) -> np.ndarray:
    """Return numbers as they are, dates as days since 1970, times as days; NaN for gaps."""
    kind = column.type
    if not pa.types.is_temporal(kind):
        return numbers(column, name, file, "feature", gaps=True)
    if pa.types.is_date(kind):
        unit = pa.timestamp("us")
    elif pa.types.is_timestamp(kind):
        unit = pa.timestamp("us", kind.tz)
    elif pa.types.is_time(kind):
        unit = pa.time64("us")
    else:
        unit = pa.duration("us")
    try:
        column = pc.cast(pc.cast(column, unit, safe=False), pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise UserError(
            f"{file}: column {quoted(name)} of type {kind} cannot be used as a feature."
        ) from None
    days: np.ndarray = column.to_numpy().astype(np.float64) / _MICROSECONDS_PER_DAY
    return days
