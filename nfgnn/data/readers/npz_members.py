"""Read arrays of an ``.npz`` file after their declared sizes have been checked.

An ``.npz`` is a zip archive of ``.npy`` files. Four megabytes can unpack to four gigabytes, and the
header of an array can declare a shape that the archive does not hold. Only the arrays that are
asked for are unpacked. Their sizes are compared with the archive and with the memory before.
"""

import zipfile
from collections.abc import Collection
from math import prod
from pathlib import Path
from typing import IO

import numpy as np

from nfgnn.data.memory import require_memory
from nfgnn.errors import UserError

_CHUNK = 2**24  # bytes that are unpacked at once
Header = tuple[tuple[int, ...], bool, np.dtype]
"""Shape, whether in Fortran order, and type of an array."""


def read_members(path: Path, wanted: Collection[str]) -> dict[str, np.ndarray]:
    """Read those of the wanted arrays that the file contains."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        members = _members(archive)
        present = {key: info for key, info in members.items() if key in wanted}
        require_memory(sum(info.file_size for info in present.values()), path.name)
        for key, info in present.items():
            with archive.open(info) as file:
                header = _checked_header(file, info, path.name)
                arrays[key] = _read_values(file, header)
    return arrays


def check_members(path: Path) -> None:
    """Check the declared sizes of all arrays, for a reader that unpacks them itself."""
    with zipfile.ZipFile(path) as archive:
        members = _members(archive)
        require_memory(sum(info.file_size for info in members.values()), str(path))
        for info in members.values():
            with archive.open(info) as file:
                _checked_header(file, info, str(path))


def member_sizes(path: Path) -> dict[str, int]:
    """Return the unpacked size of every array in bytes."""
    with zipfile.ZipFile(path) as archive:
        return {key: info.file_size for key, info in _members(archive).items()}


def read_header(file: IO[bytes]) -> Header:
    """Read the header of an ``.npy`` file, and refuse values of no size.

    NumPy divides by the size when it maps a file, which ends the process.
    """
    if np.lib.format.read_magic(file) == (1, 0):
        header = np.lib.format.read_array_header_1_0(file)
    else:
        header = np.lib.format.read_array_header_2_0(file)
    if header[2].itemsize == 0:
        raise ValueError(f"values of type {header[2]!r} have no size")
    return header


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    infos = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    return {info.filename.removesuffix(".npy"): info for info in infos}


def _checked_header(file: IO[bytes], info: zipfile.ZipInfo, where: str) -> Header:
    key = info.filename.removesuffix(".npy")
    shape, fortran, dtype = read_header(file)
    if dtype.hasobject:
        raise UserError(
            f"{where}: the key {key!r} contains Python objects, which are not loaded; "
            "save numbers or text."
        )
    num_bytes = dtype.itemsize * prod(shape)
    present = info.file_size - file.tell()
    if min(shape, default=0) < 0 or num_bytes > present:
        raise UserError(
            f"{where}: the key {key!r} declares shape {list(shape)} of {dtype}, {num_bytes:,} "
            f"bytes, but contains {present:,} bytes; create the file again."
        )
    # Features of one byte become four in float32.
    require_memory(num_bytes + 4 * prod(shape), f"{where}: the key {key!r}")
    return shape, fortran, dtype


def _read_values(file: IO[bytes], header: Header) -> np.ndarray:
    shape, fortran, dtype = header
    values = np.empty(prod(shape), dtype)
    if values.nbytes:
        target = values.view(np.uint8).data
        for start in range(0, len(target), _CHUNK):
            piece = file.read(min(_CHUNK, len(target) - start))
            target[start : start + len(piece)] = piece
    file.read()  # to the end, where the checksum of the archive is compared
    return values.reshape(shape, order="F" if fortran else "C")
