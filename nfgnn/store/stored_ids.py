"""The users' ids of the rows of a store, as text that is read in place."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ID_FILES = ("id_text", "id_start", "id_order")
"""Files of a store whose ids are not the numbers of the nodes."""


@dataclass(frozen=True)
class StoredIds:
    """Ids as text, found by binary search.

    Args:
        text: the ids one after the other in UTF-8, uint8.
        start: where the id of every row starts, and the end, int64 ``[rows + 1]``.
        order: the rows in ascending order of their ids, int64 ``[rows]``.
    """

    text: np.ndarray
    start: np.ndarray
    order: np.ndarray

    def all(self) -> pa.Array:
        """Return the ids of all rows: whole numbers if all ids are, else text."""
        buffers = [None, pa.py_buffer(self.start), pa.py_buffer(self.text)]
        texts = pa.LargeStringArray.from_buffers(len(self.order), buffers[1], buffers[2])
        try:
            numbers = pc.cast(texts, pa.int64())
        except pa.ArrowInvalid:
            return texts
        # Ids such as 007 are text.
        same = pc.equal(pc.cast(numbers, pa.large_string()), texts)
        return numbers if pc.all(same).as_py() else texts

    def find(self, wanted: Sequence[str]) -> np.ndarray:
        """Return the rows of ids, -1 for unknown ids."""
        rows = np.full(len(wanted), -1, dtype=np.int64)
        for i, name in enumerate(wanted):
            encoded = name.encode()
            place = bisect_left(self.order, encoded, key=self.encoded)
            if place < len(self.order) and self.encoded(self.order[place]) == encoded:
                rows[i] = self.order[place]
        return rows

    def encoded(self, row: int) -> bytes:
        """Return the id of a row in UTF-8."""
        return self.text[self.start[row] : self.start[row + 1]].tobytes()


def id_arrays(ids: Any, nodes: np.ndarray) -> Mapping[str, np.ndarray]:
    """Return the arrays of :class:`StoredIds` by the names of their files.

    Ids that are the numbers of the nodes need no files.

    Args:
        ids: the ids of the nodes.
        nodes: the numbers of the nodes.
    """
    texts = _as_text(ids)
    if pc.all(pc.equal(texts, _as_text(nodes))).as_py():
        return {}
    _, start, text = texts.buffers()
    start = np.frombuffer(start, dtype=np.int64)[texts.offset :][: len(texts) + 1]
    text = np.frombuffer(text, dtype=np.uint8)[start[0] : start[-1]]
    order = pc.sort_indices(texts).to_numpy().astype(np.int64)
    return {"id_text": text, "id_start": start - start[0], "id_order": order}


def _as_text(ids: Any) -> pa.LargeStringArray:
    try:
        return pc.cast(pa.array(ids), pa.large_string())
    except pa.ArrowException:
        # NetworkX allows ids of different types in one graph.
        return pa.array([str(name) for name in ids], pa.large_string())
