"""Labels of any kind → 0 … C-1, with the names they had.

A missing label (null, NaN, -1 or one of the words in ``MISSING``) becomes -1. Whole numbers are ordered as
numbers, other labels as text, so a graph written to CSV and read back numbers its classes the same way.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from nfgnn.errors import UserError

UNLABELLED = -1
MISSING = {"", "nan", "NaN", "NA", "N/A", "null", "None", "<NA>"}


def encode_labels(values: Any, where: str) -> tuple[np.ndarray, list[str]]:
    """Number the labels.

    Args:
        values: an array (NumPy or Arrow) or a list: integers, whole floats, booleans or text; None and NaN
        are
            missing.
        where: what to name in an error message.

    Returns:
        ``y`` int64 with -1 for a missing label, and the class names.
    """
    codes, kinds = _distinct(values, where)
    names = [_name(kind) for kind in kinds]
    numbers = [None if name is None else _integer(name) for name in names]
    present = [name for name in names if name is not None]
    _refuse_quantities(present, codes, names, where)
    if all(number is not None for name, number in zip(names, numbers) if name is not None):
        order: list[Any] = sorted(
            {number for number in numbers if number not in (None, UNLABELLED)}, key=int
        )
        keys: list[Any] = numbers
    else:
        order, keys = sorted(set(present)), list(names)
    place = {key: i for i, key in enumerate(order)}
    table = np.array([place.get(key, UNLABELLED) for key in keys] + [UNLABELLED], dtype=np.int64)
    return table[codes], [str(key) for key in order]


def _distinct(values: Any, where: str) -> tuple[np.ndarray, list[Any]]:
    """A code for every value and the value of every code; a null has the code -1."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        kinds, codes = np.unique(values, return_inverse=True)
        return codes.reshape(-1), kinds.tolist()
    try:
        array = (
            values
            if isinstance(values, pa.Array | pa.ChunkedArray)
            else pa.array(values, from_pandas=True)
        )
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
    except (pa.ArrowException, TypeError, ValueError):
        try:  # a column of several types: as text
            return _distinct(pa.array([None if v is None else str(v) for v in values]), where)
        except (pa.ArrowException, TypeError, ValueError):
            raise UserError(f"{where}: the labels cannot be read as numbers or names.") from None
    codes = array.indices.fill_null(UNLABELLED).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), array.dictionary.to_pylist()


def _name(value: Any) -> str | None:
    if value is None or value != value:
        return None
    name = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    name = name.strip()
    return None if name in MISSING else name


def _integer(name: str) -> int | None:
    """The whole number a text stands for; "3.0" is 3, as tools write a column of integers with gaps."""
    try:
        number = float(name)
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else None


def _refuse_quantities(
    present: list[str], codes: np.ndarray, names: list[str | None], where: str
) -> None:
    """Labels that are all numbers but not whole ones are a quantity, not a class."""
    try:
        odd = [name for name in present if not float(name).is_integer()]
    except ValueError:
        return
    except OverflowError:  # pragma: no cover
        odd = present
    if odd:
        row = int(np.flatnonzero(codes == names.index(odd[0]))[0]) + 1
        raise UserError(
            f"{where}: the label in row {row} is {odd[0]}, not a class; labels are whole numbers or names "
            "(to predict a quantity, cut it into classes first)."
        )


def few(names: list[str]) -> str:
    """A list of names for a message, cut when it is long."""
    return (
        ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:5])}, … ({len(names)} in all)"
    )
