"""Convert columns of a table to numbers and masks; errors name the row and the column."""

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from nfgnn.data.labels import MISSING
from nfgnn.data.messages import quoted
from nfgnn.errors import UserError

_BLOCK = 4096  # rows
FEATURE = "feature"
WEIGHT = "weight"
_WHAT_IT_IS = {
    FEATURE: "each remaining column is a feature",
    WEIGHT: "edge weights are numbers",
}
_SPLIT_WORDS = {
    "train": 0,
    "training": 0,
    "val": 1,
    "valid": 1,
    "validation": 1,
    "test": 2,
}
_DECIMAL_COMMA = re.compile(r"[+-]?\d+(\.\d{3})*,\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 3,125 may be a number of either form


@dataclass(frozen=True)
class Columns:
    """The names of columns with a meaning. Every other column of the nodes is a feature.

    ``label``, ``split`` and ``weight`` may be missing, unless their name is changed.
    """

    id_column: str = "id"
    label_column: str = "label"
    split_column: str = "split"
    source_column: str = "source"
    target_column: str = "target"
    weight_column: str = "weight"
    drop_columns: tuple[str, ...] = ()
    category_columns: tuple[str, ...] = ()
    """Features that are categories although they are numbers or have many values."""

    @property
    def text(self) -> tuple[str, ...]:
        """The columns that are read from CSV as text."""
        ids = (self.id_column, self.source_column, self.target_column)
        return (*ids, self.label_column, self.split_column)

    def features(self, names: list[str]) -> list[str]:
        """Return those of the columns of the nodes that are features."""
        others = {self.id_column, self.label_column, self.split_column, *self.drop_columns}
        return [name for name in names if name not in others]


def require(names: list[str], name: str, file: str, role: str) -> None:
    """Refuse a table without a column."""
    if name in names:
        return
    found = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    option = f"{role}_columns" if role in ("drop", "category") else f"{role}_column"
    raise UserError(
        f"{file}: there is no column {quoted(name)} (found: {found}); rename it, or pass "
        f"--column {role}=NAME (in Python: {option}=NAME)."
    )


def could_be_weight(column: pa.ChunkedArray) -> bool:
    """Whether a column has only numbers, without gaps."""
    kind = column.type
    has_numbers = (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )
    return bool(has_numbers and column.null_count == 0)


def optional(table: pa.Table, name: str, default: str, file: str) -> pa.ChunkedArray | None:
    """Return a column that may be missing under its default name, which is also its role."""
    if name == default and name not in table.column_names:
        return None
    require(table.column_names, name, file, default)
    return table[name]


def numbers(
    column: pa.ChunkedArray,
    name: str,
    file: str,
    what: str,
    gaps: bool = False,
    first: int = 0,
) -> np.ndarray:
    """Return a column as numbers; refuse gaps, text and infinity.

    Args:
        column: the column.
        name: its name, for error messages.
        file: the file, for error messages.
        what: :data:`FEATURE` or :data:`WEIGHT`, for error messages.
        gaps: return gaps as NaN instead of refusing them.
        first: rows of the table before this column, for error messages.
    """
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if column.null_count and not gaps:
        row = first + pc.index(pc.is_null(column), True).as_py() + 1
        raise UserError(
            f"{file}: row {row}, column {quoted(name)}: the {what} is missing; "
            f"fill the gap, or {_way_without(name, what)}."
        )
    if pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.float32())
    elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        column = _parse(column, name, file, what)
    values: np.ndarray = column.to_numpy()
    # A finite sum proves that all terms are finite, which is the fast common case.
    if values.dtype.kind == "f" and not np.isfinite(values.sum()):
        invalid = np.flatnonzero(np.isinf(values) if gaps else ~np.isfinite(values))
        if len(invalid):
            row = int(invalid[0])
            raise UserError(
                f"{file}: row {first + row + 1}, column {quoted(name)}: the {what} is "
                f"{values[row]}; "
                "a finite number is required."
            )
    return values


def feature_matrix(table: pa.Table, names: list[str], file: str) -> tuple[torch.Tensor, list[str]]:
    """Return columns of numbers as a float32 matrix, and their names.

    A list column of equal lengths becomes as many columns. This is for tables that are read in
    batches; :func:`~nfgnn.data.readers.feature_columns.encode_table` also encodes gaps, text and
    dates.
    """
    table = unfold_lists(table, names, file)
    names = table.column_names
    columns = [numbers(table[name], name, file, "feature") for name in names]
    matrix = np.empty((table.num_rows, len(names)), dtype=np.float32)
    # Values that float32 cannot hold become infinite, and validation reports them.
    with np.errstate(over="ignore"):
        # A block of rows stays in the processor's cache while its columns are written.
        for start in range(0, table.num_rows, _BLOCK):
            block = matrix[start : start + _BLOCK]
            for place, column in enumerate(columns):
                block[:, place] = column[start : start + _BLOCK]
    return torch.from_numpy(matrix), names


def split_codes(column: pa.ChunkedArray, name: str, file: str, rows_before: int = 0) -> np.ndarray:
    """Return 0 for train, 1 for val, 2 for test and -1 for none of them, int8 [rows]."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(column, pa.string())))
    encoded = words.combine_chunks().dictionary_encode()
    missing = {word.lower() for word in MISSING}
    codes = []
    for code, word in enumerate(encoded.dictionary.to_pylist()):
        if word not in _SPLIT_WORDS and word not in missing:
            row = rows_before + pc.index(encoded.indices, code).as_py() + 1
            raise UserError(
                f"{file}: row {row}, column {quoted(name)}: {word!r} is not a valid split; use "
                "train, val, test or leave it empty."
            )
        codes.append(_SPLIT_WORDS.get(word, -1))
    # A null gets the last entry of the table.
    indices = encoded.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
    result: np.ndarray = np.array([*codes, -1], dtype=np.int8)[indices]
    return result


def split_masks(codes: np.ndarray) -> dict[str, np.ndarray]:
    """Return the masks of :func:`split_codes`."""
    parts = enumerate(("train_mask", "val_mask", "test_mask"))
    return {key: codes == code for code, key in parts}


def _parse(column: pa.ChunkedArray, name: str, file: str, what: str) -> pa.ChunkedArray:
    """Parse text or decimals as numbers; report the first value that is none."""
    try:
        return pc.cast(column, pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    for row, value in enumerate(column.to_pylist(), start=1):
        if value is None:
            continue
        try:
            float(value)
        except (TypeError, ValueError):
            text = str(value)
            fix = f"{_WHAT_IT_IS[what]}: encode it as numbers"
            if is_decimal_comma(text):
                fix = use_decimal_point(text)
            raise UserError(
                f"{file}: row {row}, column {quoted(name)}: {text[:60]!r} is not a number; "
                f"{fix}, or {_way_without(name, what)}."
            ) from None
    raise UserError(
        f"{file}: column {quoted(name)} of type {column.type} cannot be used as a {what}; "
        f"convert it to numbers, or {_way_without(name, what)}."
    )


def is_decimal_comma(text: str, or_thousands: bool = False) -> bool:
    """Whether a text is a number with a decimal comma, such as ``3,1`` or ``1.234,5``.

    Args:
        text: the text.
        or_thousands: accept ``3,125``, which may also be 3125.
    """
    text = text.strip()
    if _DECIMAL_COMMA.fullmatch(text) is None:
        return False
    return or_thousands or _THOUSANDS.fullmatch(text) is None


def use_decimal_point(text: str) -> str:
    """Return the advice for a number with a decimal comma."""
    text = text.strip()[:30]
    number = text.replace(".", "").replace(",", ".")
    return f"numbers need a decimal point ({number} instead of {text})"


def _way_without(name: str, what: str) -> str:
    """Return how to read a table without a column that is not numeric.

    Only columns of the nodes can be dropped. Those of the edges are ignored unless they are named.
    """
    if what == FEATURE:
        return f"pass --column drop={name}"
    if name == Columns.weight_column:
        return "rename the column to ignore it"
    return f"omit --column weight={name} to ignore it"


def unfold_lists(table: pa.Table, names: list[str], file: str) -> pa.Table:
    """Return some columns of a table, list columns replaced by one column per entry."""
    if not any(pa.types.is_nested(table[name].type) for name in names):
        return table.select(names)
    columns: dict[str, pa.Array] = {}
    for name in names:
        array = table[name].combine_chunks()
        if not pa.types.is_nested(array.type):
            columns[name] = array
            continue
        try:
            lengths = set(pc.list_value_length(array).to_pylist())
        except pa.ArrowNotImplementedError:
            raise UserError(
                f"{file}: column {quoted(name)} of type {array.type} cannot be used as a feature; "
                f"convert it to numbers, or pass --column drop={name}."
            ) from None
        if len(lengths) != 1 or None in lengths:
            raise UserError(
                f"{file}: column {quoted(name)}: the lists differ in length; use lists of the "
                "same length for all nodes."
            )
        width = lengths.pop()
        values = pc.list_flatten(array)
        for i in range(width):
            places = pa.array(np.arange(i, len(values), width))
            entry = f"{name}_{i}"
            if entry in columns or entry in names:
                raise UserError(
                    f"{file}: the list column {quoted(name)} becomes the columns {name}_0, "
                    f"{name}_1, …, but there is also a column {entry!r}; rename one of them."
                )
            columns[entry] = values.take(places)
    return pa.table(columns)
