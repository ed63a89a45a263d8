"""Node ids of any kind → 0 … n-1."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nfgnn.errors import UserError


class NodeIds:
    """The ids of the nodes, each there and there once.

    Whole numbers that lie close together are found through a look-up table, everything else by hashing.
    """

    def __init__(self, column: pa.ChunkedArray, name: str, file: str) -> None:
        self.file = file
        self.ids = _comparable(column.combine_chunks(), name, file)
        self.low, self.table = _look_up_table(self.ids)
        first = self._find(self.ids)
        repeated = np.flatnonzero(first != np.arange(len(first)))
        if len(repeated):
            rows = sorted(
                (int(repeated[0]), int(first[repeated[0]]))
            )  # a table keeps the last place, hashing the first
            raise UserError(
                f"{file}: row {rows[1] + 1}, column {name!r}: the id {self.ids[rows[1]].as_py()!r} is already in row "
                f"{rows[0] + 1}; ids must be unique ({len(repeated):,} repeated in all)."
            )

    def find(self, column: pa.ChunkedArray, place: np.ndarray, name: str, file: str) -> None:
        """Write the number of the node that each id of a link's end means into ``place``."""
        done = 0
        # By table one chunk at a time, which saves a copy; hashing prepares itself anew for every call, so at once.
        by_table = self.table is not None and pa.types.is_integer(column.type)
        for chunk in column.chunks if by_table else [column.combine_chunks()]:
            wanted = _comparable(chunk, name, file, done)
            found = self._find(wanted)
            if len(found) and found.min() < 0:
                row = int(np.flatnonzero(found < 0)[0])
                raise UserError(
                    f"{file}: row {done + row + 1}, column {name!r}: the id {wanted[row].as_py()!r} is not in "
                    f"{self.file}; add the node or remove the link."
                )
            place[done : done + len(chunk)] = found
            done += len(chunk)

    def _find(self, wanted: pa.Array) -> np.ndarray:
        """Places of the ids, -1 where there is none."""
        if self.table is not None and pa.types.is_integer(wanted.type) and len(wanted):
            offset = wanted.to_numpy() - self.low
            if offset.min() < 0 or offset.max() >= len(self.table):
                offset = np.where(
                    (offset < 0) | (offset >= len(self.table)), len(self.table) - 1, offset
                )
            found: np.ndarray = self.table[offset]
            return found
        ids = self.ids
        if wanted.type != ids.type:
            wanted, ids = pc.cast(wanted, pa.string()), pc.cast(ids, pa.string())
        place: np.ndarray = (
            pc.index_in(wanted, value_set=ids).fill_null(-1).to_numpy(zero_copy_only=False)
        )
        return place


def _look_up_table(ids: pa.Array) -> tuple[int, np.ndarray | None]:
    """The lowest id and a table from there on, if there is little room between the ids; its last entry is -1."""
    if not pa.types.is_integer(ids.type) or len(ids) == 0:
        return 0, None
    low, high = (int(bound) for bound in pc.min_max(ids).as_py().values())
    if high - low >= 4 * len(ids) + 2**20 or max(abs(low), abs(high)) >= 2**62:
        return 0, None
    table = np.full(high - low + 2, -1, dtype=np.int32)
    table[ids.to_numpy() - low] = np.arange(len(ids))
    return low, table


def _comparable(array: pa.Array, name: str, file: str, before: int = 0) -> pa.Array:
    """Whole numbers as int64, everything else as text; nothing missing. ``before`` rows came earlier in the file."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count:
        _refuse_missing(pc.is_null(array), name, file, before)
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        try:
            return pc.cast(array, pa.int64())
        except pa.ArrowInvalid:  # 1.5, or beyond 64 bits
            pass
    try:
        text = pc.cast(array, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # lists, or bytes that are no text
        raise UserError(
            f"{file}: column {name!r} is of type {array.type}; ids are numbers or text."
        ) from None
    _refuse_missing(pc.equal(text, ""), name, file, before)
    return text


def _refuse_missing(missing: pa.Array, name: str, file: str, before: int) -> None:
    row = pc.index(missing, True).as_py()
    if row >= 0:
        raise UserError(f"{file}: row {before + row + 1}, column {name!r}: the id is missing.")
