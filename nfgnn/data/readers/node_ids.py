"""Map node ids of any kind to 0 … n-1."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from torch import Tensor

from nfgnn.errors import UserError


class NodeIds:
    """The ids of the nodes, complete and unique.

    Whole numbers with small gaps are found by a look-up table, all other ids by hashing.

    Args:
        column: the ids.
        name: name of the column, for error messages.
        file: the file, for error messages.
    """

    def __init__(self, column: pa.ChunkedArray, name: str, file: str) -> None:
        self.file = file
        self.ids = comparable(column.combine_chunks(), name, file)
        self.low, self.table = _look_up_table(self.ids)
        first = self._find(self.ids)
        repeated = np.flatnonzero(first != np.arange(len(first)))
        if len(repeated):
            # The table keeps the last place of an id, hashing the first.
            place = int(repeated[0])
            earlier, later = sorted((place, int(first[place])))
            raise UserError(
                f"{file}: row {later + 1}, column {name!r}: the id {self.ids[later].as_py()!r} is "
                f"already in row {earlier + 1}; ids must be unique ({len(repeated):,} repeated)."
            )

    def find(
        self, column: pa.ChunkedArray, out: np.ndarray, name: str, file: str, rows_before: int = 0
    ) -> None:
        """Write the number of the node with each id of an edge's end to ``out``.

        Args:
            column: the ids.
            out: receives the numbers.
            name: name of the column, for error messages.
            file: the file, for error messages.
            rows_before: rows of the file before the column, for error messages.
        """
        done = 0
        # A look-up chunk by chunk saves a copy. Hashing prepares itself anew for every call.
        by_table = self.table is not None and pa.types.is_integer(column.type)
        for chunk in column.chunks if by_table else [column.combine_chunks()]:
            wanted = comparable(chunk, name, file, rows_before + done)
            found = self._find(wanted)
            if len(found) and found.min() < 0:
                row = int(np.flatnonzero(found < 0)[0])
                raise UserError(
                    f"{file}: row {rows_before + done + row + 1}, column {name!r}: the id "
                    f"{wanted[row].as_py()!r} is not in {self.file}; "
                    "add the node or remove the edge."
                )
            out[done : done + len(chunk)] = found
            done += len(chunk)

    def _find(self, wanted: pa.Array) -> np.ndarray:
        """Return the places of ids, -1 for an unknown id."""
        found: np.ndarray
        if self.table is not None and pa.types.is_integer(wanted.type) and len(wanted):
            offset = wanted.to_numpy() - self.low
            last = len(self.table) - 1  # this entry is -1
            if offset.min() < 0 or offset.max() > last:
                offset = np.where((offset < 0) | (offset > last), last, offset)
            found = self.table[offset]
            return found
        ids = self.ids
        if wanted.type != ids.type:
            wanted = pc.cast(wanted, pa.string())
            ids = pc.cast(ids, pa.string())
        places = pc.index_in(wanted, value_set=ids).fill_null(-1)
        found = places.to_numpy(zero_copy_only=False)
        return found


def _look_up_table(ids: pa.Array) -> tuple[int, np.ndarray | None]:
    """Return the lowest id and a table of places from there on, if the gaps are small."""
    if not pa.types.is_integer(ids.type) or len(ids) == 0:
        return 0, None
    low, high = (int(bound) for bound in pc.min_max(ids).as_py().values())
    if high - low >= 4 * len(ids) + 2**20 or max(abs(low), abs(high)) >= 2**62:
        return 0, None
    table = np.full(high - low + 2, -1, dtype=np.int32)
    table[ids.to_numpy() - low] = np.arange(len(ids))
    return low, table


def comparable(array: pa.Array, name: str, file: str, rows_before: int = 0) -> pa.Array:
    """Return whole numbers as int64 and everything else as text; refuse missing ids."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count:
        _refuse_missing(pc.is_null(array), name, file, rows_before)
    if isinstance(array.type, pa.BaseExtensionType):  # a cast of UUIDs would keep their bytes
        array = pa.array([str(value) for value in array.to_pylist()], pa.string())
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        try:
            return pc.cast(array, pa.int64())
        except pa.ArrowInvalid:  # 1.5, or beyond 64 bits
            pass
    try:
        text = pc.cast(array, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # lists, or bytes that are not text
        raise UserError(
            f"{file}: column {name!r} has type {array.type}; ids must be numbers or text."
        ) from None
    _refuse_missing(pc.equal(text, ""), name, file, rows_before)
    return text


def _refuse_missing(missing: pa.Array, name: str, file: str, rows_before: int) -> None:
    row = pc.index(missing, True).as_py()
    if row >= 0:
        raise UserError(
            f"{file}: row {rows_before + row + 1}, column {name!r}: the id is missing; every row "
            "needs an id."
        )


def ids_as_array(ids: Any) -> pa.Array:
    """Return the ids of a graph as a column: all numbers or all text, without repetition.

    Nodes of NetworkX may be any objects. They are written as text, or as numbers of nodes if two of
    them have the same text.
    """
    if isinstance(ids, Tensor):
        ids = ids.numpy(force=True)
    try:
        array = pa.array(ids)
    except (pa.ArrowException, OverflowError):  # of several types, or beyond 64 bits
        array = None
    if array is not None and not _is_structured(array.type):
        return array
    texts = [str(name) for name in ids]
    return pa.array(texts if len(set(texts)) == len(texts) else range(len(texts)))


def _is_structured(kind: pa.DataType) -> bool:
    """Whether values are objects to Arrow, such as tuples and UUIDs, which CSV cannot hold."""
    return bool(pa.types.is_nested(kind)) or isinstance(kind, pa.BaseExtensionType)
