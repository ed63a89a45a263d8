"""Columns of a table → numbers, with the row and column of whatever is not one."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from nfgnn.errors import UserError

_ROWS = 4096


def feature_matrix(table: pa.Table, names: list[str], file: str) -> tuple[torch.Tensor, list[str]]:
    """The columns side by side as float32; a list column of equal lengths becomes as many columns."""
    if any(pa.types.is_nested(table[name].type) for name in names):
        table, names = _unfold(table, names, file)
    columns = [numbers(table[name], name, file, "feature") for name in names]
    matrix = np.empty((table.num_rows, len(names)), dtype=np.float32)
    with np.errstate(
        over="ignore"
    ):  # what float32 cannot hold becomes infinite, and the gate names it
        for start in range(
            0, table.num_rows, _ROWS
        ):  # a block stays in the cache while its columns are written
            block = matrix[start : start + _ROWS]
            for place, column in enumerate(columns):
                block[:, place] = column[start : start + _ROWS]
    return torch.from_numpy(matrix), names


def numbers(column: pa.ChunkedArray, name: str, file: str, what: str) -> np.ndarray:
    """A column as floating-point numbers; refuse gaps, text and infinity."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py() + 1
        raise UserError(
            f"{file}: row {row}, column {name!r}: the {what} is missing; fill the gap or drop the column."
        )
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        column = _parsed(column, name, file, what)
    elif pa.types.is_boolean(kind):
        column = pc.cast(column, pa.float32())
    values: np.ndarray = column.to_numpy()
    if values.dtype.kind == "f" and not np.isfinite(values.sum()) and not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise UserError(
            f"{file}: row {row + 1}, column {name!r}: the {what} is {values[row]}; a finite number is needed."
        )
    return values


def _parsed(column: pa.ChunkedArray, name: str, file: str, what: str) -> pa.ChunkedArray:
    """Text or decimals as numbers; the first that is none is named."""
    try:
        return pc.cast(column, pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    for row, value in enumerate(column.to_pylist(), start=1):
        try:
            float(value)
        except (TypeError, ValueError):
            raise UserError(
                f"{file}: row {row}, column {name!r}: {str(value)[:60]!r} is not a number; every column "
                f"without a meaning of its own is a {what}: encode it, or say --column drop={name}."
            ) from None
    raise UserError(f"{file}: column {name!r} of type {column.type} cannot be used as a {what}.")


def _unfold(table: pa.Table, names: list[str], file: str) -> tuple[pa.Table, list[str]]:
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
                f"{file}: column {name!r} of type {array.type} cannot be used as a feature."
            ) from None
        if len(lengths) != 1 or None in lengths:
            raise UserError(
                f"{file}: column {name!r}: the lists differ in length; every node needs the same."
            )
        width = lengths.pop()
        flat = pc.list_flatten(array)
        columns |= {
            f"{name}_{i}": flat.take(pa.array(np.arange(i, len(flat), width))) for i in range(width)
        }
    return pa.table(columns), list(columns)
