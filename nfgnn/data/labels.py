"""Encode labels of any kind as 0 … C-1 and keep their names.

A missing label (null, NaN, -1 or one of the words in ``MISSING``) becomes -1. Labels that are all
whole numbers in their usual form are sorted as numbers, other labels as text, so that a graph
numbers its classes in the same way after it has been written to CSV and read again. The labels
``01`` and ``1`` are different, and so are ``1e3`` and ``1000``.
"""

import re
from typing import Any

import numpy as np
import pyarrow as pa

from nfgnn.errors import UserError

UNLABELLED = -1
# Not 01, +1, 1_0, 1e3 or ٣, which int() or float() accept.
_INTEGER = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0+)?")
MISSING = {"", "nan", "NaN", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "<NA>"}


def encode_labels(values: Any, where: str) -> tuple[np.ndarray, list[str]]:
    """Encode labels as class numbers.

    Args:
        values: an array (NumPy or Arrow) or a list of integers, whole floats, booleans or text;
            None and NaN are missing labels.
        where: the place that error messages name.

    Returns:
        ``y`` as int64, -1 for a missing label, and the class names.
    """
    codes, distinct = _distinct(values, where)
    names = [_name(value) for value in distinct]
    present = [name for name in names if name is not None]
    _refuse_quantities(present, codes, names, where)
    numbers = [None if name is None else _integer(name) for name in names]
    keys: list[Any]
    if all(_integer(name) is not None for name in present):
        keys = numbers
        present_numbers = {number for number in numbers if number is not None}
        classes: list[Any] = sorted(present_numbers - {UNLABELLED})
    else:
        keys = list(names)
        classes = sorted(set(present))
        if all(_is_number(name) for name in present):
            # Among numbers such as 01 and 02, -1 still means unlabelled.
            classes = [name for name in classes if _integer(name) != UNLABELLED]
    place = {key: i for i, key in enumerate(classes)}
    # A null has the code -1, which the last entry of the table decodes.
    table = [place.get(key, UNLABELLED) for key in keys] + [UNLABELLED]
    return np.array(table, dtype=np.int64)[codes], [str(key) for key in classes]


def _distinct(values: Any, where: str) -> tuple[np.ndarray, list[Any]]:
    """Return a code for every value and the value of every code; a null has the code -1."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        distinct, codes = np.unique(values, return_inverse=True)
        return codes.reshape(-1), distinct.tolist()
    try:
        return _dictionary(values)
    except (pa.ArrowException, TypeError, ValueError):
        pass
    try:  # values of several types are compared as text
        return _dictionary([None if value is None else str(value) for value in values])
    except (pa.ArrowException, TypeError, ValueError):
        raise UserError(f"{where}: the labels cannot be read as numbers or names.") from None


def _dictionary(values: Any) -> tuple[np.ndarray, list[Any]]:
    array = values
    if not isinstance(array, pa.Array | pa.ChunkedArray):
        array = pa.array(array, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    codes = array.indices.fill_null(UNLABELLED).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), array.dictionary.to_pylist()


def _name(value: Any) -> str | None:
    if value is None or value != value:  # NaN
        return None
    name = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    name = name.strip()
    return None if name in MISSING else name


def _integer(name: str) -> int | None:
    """Return the whole number that a text stands for, ``None`` for any other way to write one.

    "3.0" is 3, because many tools write integers with gaps as floats.
    """
    return int(name.partition(".")[0]) if _INTEGER.fullmatch(name) else None


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _refuse_quantities(
    present: list[str], codes: np.ndarray, names: list[str | None], where: str
) -> None:
    """Refuse labels that are all numbers, but not all whole: they are a quantity, not a class."""
    if not all(_is_number(name) for name in present):
        return
    fractions = [name for name in present if not float(name).is_integer()]
    if fractions:
        row = int(np.flatnonzero(codes == names.index(fractions[0]))[0]) + 1
        raise UserError(
            f"{where}: the label in row {row} is {fractions[0]}, not a class; labels are whole "
            "numbers or names (to predict a quantity, bin it into classes first)."
        )
