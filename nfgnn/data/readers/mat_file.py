"""Read numeric arrays of MATLAB files (level 5, ``.mat``), dense and sparse.

``scipy.io.loadmat`` ends with a segmentation fault on some damaged files. This reader knows only
what the data sets of the LINKX study need, and compares every size with the file before it
allocates. The layout is the one of "MAT-File Format", MathWorks, chapter 1: a header of 128 bytes,
then elements with a tag of type and size, of which each contains an array or a compressed one.
"""

import struct
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from nfgnn.data.memory import require_memory
from nfgnn.data.messages import first_line
from nfgnn.data.readers.csr_parts import csr_from_parts
from nfgnn.errors import UserError

_HEADER_BYTES = 128
_PEEK_BYTES = 4096  # enough for the flags, dimensions and name of an array
_MATRIX = 14
_COMPRESSED = 15
_SPARSE = 5  # class of an array
_NUMERIC = range(6, 16)  # classes of dense arrays of numbers
_COMPLEX = 0x0800
_DTYPES = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip


def read_mat(path: Path, wanted: Collection[str]) -> dict[str, Any]:
    """Return the wanted arrays: dense ones as NumPy arrays, sparse ones as their CSR transpose."""
    arrays: dict[str, Any] = {}
    require_memory(path.stat().st_size, str(path))
    try:
        content = memoryview(path.read_bytes())
        order = _byte_order(content)
        position = _HEADER_BYTES
        while position < len(content):
            kind, payload, position = _element(content, position, order)
            if kind == _COMPRESSED:
                payload = _unpacked(payload, order, wanted, path)
            elif kind != _MATRIX:
                raise ValueError(f"it contains an element of type {kind}")
            header = _array_header(payload, order)
            if header.name in wanted:
                arrays[header.name] = _array(payload, header, order, path)
    except (ValueError, struct.error, zlib.error, OverflowError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(
            f"{path}: cannot be read as a MATLAB file: {first_line(error)}; download it again."
        ) from None
    missing = [name for name in wanted if name not in arrays]
    if missing:
        raise UserError(f"{path}: the array {missing[0]!r} is missing; download the file again.")
    return arrays


@dataclass(frozen=True)
class _ArrayHeader:
    flags: int
    shape: tuple[int, ...]
    name: str
    end: int
    """Where the values begin."""


def _byte_order(content: memoryview) -> str:
    mark = bytes(content[126:128])
    if mark not in (b"IM", b"MI"):
        raise ValueError("it has no MATLAB level 5 header")
    return "<" if mark == b"IM" else ">"


def _element(content: memoryview, position: int, order: str) -> tuple[int, memoryview, int]:
    """Return the type and the payload of the element at a position, and the next position."""
    kind, size = struct.unpack_from(f"{order}II", content, position)
    start = position + 8
    following = start + size
    if kind >> 16:  # a short element: its size and type share four bytes, its payload the others
        size = kind >> 16
        kind &= 0xFFFF
        start = position + 4
        following = position + 8
    elif kind != _COMPRESSED:
        following += -size % 8  # padding
    end = start + size
    if end > min(following, len(content)):
        raise ValueError(f"an element of {size:,} bytes exceeds the space for it")
    return kind, content[start:end], following


def _unpacked(
    compressed: memoryview, order: str, wanted: Collection[str], path: Path
) -> memoryview:
    """Return an unpacked array, or only its beginning if it is not wanted."""
    beginning = zlib.decompressobj().decompress(compressed[:_PEEK_BYTES], _PEEK_BYTES)
    kind, size = struct.unpack_from(f"{order}II", beginning)
    if kind != _MATRIX:
        raise ValueError(f"it contains a compressed element of type {kind}")
    payload = memoryview(beginning)[8:]
    if size <= len(payload) or _array_header(payload, order).name not in wanted:
        return payload
    require_memory(2 * size, str(path))
    return memoryview(zlib.decompressobj().decompress(compressed, size + 8))[8:]


def _array_header(payload: memoryview, order: str) -> _ArrayHeader:
    kind, flags, position = _element(payload, 0, order)
    if kind != 6 or len(flags) != 8:
        raise ValueError("an array has no flags")
    _, dimensions, position = _element(payload, position, order)
    _, name, position = _element(payload, position, order)
    shape = tuple(np.frombuffer(dimensions, f"{order}i4").tolist())
    text = bytes(name).decode("ascii", errors="replace")
    return _ArrayHeader(struct.unpack_from(f"{order}I", flags)[0], shape, text, position)


def _array(payload: memoryview, header: _ArrayHeader, order: str, path: Path) -> Any:
    kind = header.flags & 0xFF
    shape = header.shape
    if header.flags & _COMPLEX or (kind != _SPARSE and kind not in _NUMERIC):
        raise ValueError(f"the array {header.name!r} does not contain real numbers")
    if min(shape, default=-1) < 0:
        raise ValueError(f"the array {header.name!r} has shape {shape}")
    if kind == _SPARSE:
        rows, position = _numbers(payload, header.end, order)
        columns, position = _numbers(payload, position, order)
        values, _ = _numbers(payload, position, order)
        # MATLAB allocates more places than it uses. Compressed columns are rows of the transpose.
        count = int(columns[-1]) if len(columns) else 0
        parts = [values[:count], rows[:count], columns, np.array(shape[::-1])]
        return csr_from_parts(parts, f"{path}: {header.name}")
    values, _ = _numbers(payload, header.end, order)
    if len(values) != prod(shape):
        raise ValueError(f"the array {header.name!r} has {len(values):,} values for shape {shape}")
    return values.reshape(shape, order="F")


def _numbers(payload: memoryview, position: int, order: str) -> tuple[np.ndarray, int]:
    kind, content, position = _element(payload, position, order)
    if kind not in _DTYPES:
        raise ValueError(f"it contains numbers of type {kind}")
    stored = np.frombuffer(content, f"{order}{_DTYPES[kind]}")
    return stored.astype(_DTYPES[kind]), position
