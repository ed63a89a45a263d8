"""Labels of any kind → 0 … C-1, with the names they had.

A missing label (null, empty, NaN, -1) becomes -1. Integers are ordered as numbers, other labels as text, so a graph written to
CSV and read back numbers its classes the same way.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from nfgnn.errors import UserError

UNLABELLED = -1


def encode_labels(values: Any, where: str) -> tuple[np.ndarray, list[str]]:
    """Number the labels.

    Args:
        values: an array or a list: integers, whole floats, booleans or text; None and NaN are missing.
        where: what to name in an error message.

    Returns:
        ``y`` int64 with -1 for a missing label, and the class names.
    """
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        return _number_integers(array.astype(np.int64))
    if array.dtype.kind == "f":
        missing = np.isnan(array)
        whole = np.where(missing, UNLABELLED, array)
        if not np.all(np.isfinite(whole)) or not np.all(whole == np.round(whole)):
            row = int(np.flatnonzero(~np.isfinite(whole) | (whole != np.round(whole)))[0])
            raise UserError(
                f"{where}: the label in row {row} is {array[row]}, not a class; labels are whole numbers or names "
                "(to predict a quantity, cut it into classes first)."
            )
        return _number_integers(whole.astype(np.int64))
    return _number_names(array.tolist())


def _number_integers(array: np.ndarray) -> tuple[np.ndarray, list[str]]:
    classes, y = np.unique(array[array != UNLABELLED], return_inverse=True)
    encoded = np.full(len(array), UNLABELLED, dtype=np.int64)
    encoded[array != UNLABELLED] = y
    return encoded, [str(c) for c in classes.tolist()]


def _number_names(values: Iterable[Any]) -> tuple[np.ndarray, list[str]]:
    names = [_name(value) for value in values]
    present = sorted({name for name in names if name is not None})
    numbers = [_integer(name) for name in present]
    if present and all(number is not None for number in numbers):
        integer = {name: number for name, number in zip(present, numbers)}
        return _number_integers(
            np.array([UNLABELLED if n is None else integer[n] for n in names], dtype=np.int64)
        )
    position = {name: i for i, name in enumerate(present)}
    y = np.array([UNLABELLED if n is None else position[n] for n in names], dtype=np.int64)
    return y, present


def _name(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return str(value).strip() or None


def _integer(name: str) -> int | None:
    """The whole number that a text stands for; "3.0" is 3, as tools write a column of integers with gaps."""
    try:
        number = float(name)
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else None


def few(names: list[str]) -> str:
    """A list of names for a message, cut when it is long."""
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:5])}, … ({len(names)} in all)"
