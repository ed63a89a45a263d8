"""Node ids of any kind → 0 … n-1."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nfgnn.errors import UserError


def check_ids(column: pa.ChunkedArray, name: str, file: str) -> pa.Array:
    """The ids of the nodes, each there and there once."""
    ids = _comparable(column, name, file)
    _refuse_missing(ids, name, file)
    if _spread(ids) is not None and len(np.unique(ids.to_numpy())) == len(ids):
        return ids
    first = pc.index_in(ids, value_set=ids).to_numpy(zero_copy_only=False)
    repeated = np.flatnonzero(first != np.arange(len(ids)))
    if len(repeated):
        row, before = int(repeated[0]), int(first[repeated[0]])
        raise UserError(
            f"{file}: row {row + 1}, column {name!r}: the id {ids[row].as_py()!r} is already in row "
            f"{before + 1}; ids must be unique ({len(repeated):,} repeated in all)."
        )
    return ids


def place_of(column: pa.ChunkedArray, ids: pa.Array, name: str, file: str, nodes_file: str) -> np.ndarray:
    """For each id of a link's end, the number of the node."""
    wanted = _comparable(column, name, file)
    _refuse_missing(wanted, name, file)
    if wanted.type != ids.type:
        wanted, ids = pc.cast(wanted, pa.string()), pc.cast(ids, pa.string())
    place = _place_of_integers(wanted, ids)
    unknown = np.flatnonzero(place < 0)
    if len(unknown):
        row = int(unknown[0])
        raise UserError(
            f"{file}: row {row + 1}, column {name!r}: the id {wanted[row].as_py()!r} is not in {nodes_file} "
            f"({len(unknown):,} such rows); add the node or remove the link."
        )
    return place


def _comparable(column: pa.ChunkedArray, name: str, file: str) -> pa.Array:
    """Whole numbers as int64, everything else as trimmed text."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        try:
            return pc.cast(array, pa.int64())
        except pa.ArrowInvalid:  # 1.5, or beyond 64 bits
            pass
    try:
        text = pc.cast(array, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # lists, or bytes that are no text
        raise UserError(f"{file}: column {name!r} is of type {array.type}; ids are numbers or text.") from None
    trimmed = pc.utf8_trim_whitespace(text)
    return text if trimmed.equals(text) else trimmed


def _refuse_missing(ids: pa.Array, name: str, file: str) -> None:
    empty = pc.is_null(ids)
    if pa.types.is_string(ids.type):
        empty = pc.or_kleene(empty, pc.equal(ids, ""))
    row = pc.index(empty, True).as_py()
    if row >= 0:
        raise UserError(f"{file}: row {row + 1}, column {name!r}: the id is missing.")


def _spread(ids: pa.Array) -> tuple[int, int] | None:
    """Lowest and highest id, if they are whole numbers close enough together for a look-up table."""
    if not pa.types.is_integer(ids.type) or len(ids) == 0:
        return None
    low, high = (int(bound) for bound in pc.min_max(ids).as_py().values())
    return (low, high) if high - low < 4 * len(ids) + 2**20 else None


def _place_of_integers(wanted: pa.Array, ids: pa.Array) -> np.ndarray:
    spread = _spread(ids)
    if spread is None or not pa.types.is_integer(wanted.type):
        place: np.ndarray = pc.index_in(wanted, value_set=ids).fill_null(-1).to_numpy(zero_copy_only=False)
        return place.astype(np.int64)
    low, high = spread
    table = np.full(high - low + 2, -1, dtype=np.int64)  # the last place stands for every id out of range
    table[ids.to_numpy() - low] = np.arange(len(ids))
    offset = wanted.to_numpy()
    inside = (offset >= low) & (offset <= high)
    return table[np.where(inside, offset - low, high - low + 1)]
