"""Arrays inside an ``.npz`` file as memory maps, and block by block.

An ``.npz`` is a zip archive of ``.npy`` files. A member that is stored without compression is
mapped in place. A compressed one (or one that starts at an odd byte) is unpacked once to the cache
folder and mapped there.
"""

import hashlib
import os
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nfgnn.data.external_sort import EdgeBlocks
from nfgnn.data.features import find_nonfinite, nonfinite_error
from nfgnn.data.messages import few, first_line
from nfgnn.data.paths import cache_folder, file_identity, file_signature, is_settled
from nfgnn.data.readers.npz_members import read_header
from nfgnn.errors import UserError, system_error
from nfgnn.files import atomic_file, atomic_write, require_regular_file


def scratch_folder(name: str, source: Path) -> Path:
    """Return the folder for unpacked parts of a file; it changes with the file."""
    digest = hashlib.sha256(file_signature(source).encode()).hexdigest()
    return cache_folder() / "mapped" / f"{name}-{digest[:12]}"


def map_member(path: Path, key: str, scratch: Path) -> np.ndarray:
    """Map one array of an ``.npz``. Changes of the array never reach the file."""
    try:
        require_regular_file(path)
        with zipfile.ZipFile(path) as archive:
            if f"{key}.npy" not in archive.namelist():
                raise UserError(
                    f"{path}: there is no key {key!r} (found: {few(archive.namelist())}), which a "
                    "graph that exceeds the memory needs; save the array under this name."
                )
            info = archive.getinfo(f"{key}.npy")
            if info.compress_type == zipfile.ZIP_STORED:
                stored = _map_stored(path, info)
                if stored is not None:
                    return stored
            target = scratch / f"{path.stem}-{key}.npy"
            if not is_intact(target, info.CRC):
                _unpack(archive, info, target)
        with target.open("rb") as file:
            read_header(file)
        unpacked: np.ndarray = np.load(target, mmap_mode="c", allow_pickle=False)
        return unpacked
    except UserError:
        raise
    except OSError as error:  # a full disk or a file without permission is not damaged
        raise system_error(error, path) from None
    except Exception as error:  # a damaged file can fail in any way
        raise UserError(
            f"{path}: the key {key!r} is damaged ({first_line(error)}); create or download the "
            "file again."
        ) from None


def edge_blocks(edges: np.ndarray, name: str, weight: np.ndarray | None = None) -> EdgeBlocks:
    """Return an iterator over blocks of edges, from [2, E] or [E, 2] and weights [E]."""
    if edges.ndim != 2 or 2 not in edges.shape or edges.dtype.kind not in "iu":
        raise UserError(
            f"{name}: the edges have shape {list(edges.shape)} and type {edges.dtype}; "
            "[2, edges] of node numbers is required."
        )
    edges = edges if edges.flags.c_contiguous else edges.T
    count = edges.size // 2
    if weight is not None and (weight.size != count or weight.dtype.kind not in "biuf"):
        raise UserError(
            f"{name}: there are {weight.size:,} weights of type {weight.dtype} for {count:,} "
            "edges; give every edge one number."
        )

    def blocks(size: int) -> Iterator[tuple[np.ndarray, ...]]:
        for first in range(0, count, size):
            last = min(first + size, count)
            if edges.shape[0] == 2:
                ends = (
                    read_range(edges, first, last),
                    read_range(edges, count + first, count + last),
                )
            else:
                pairs = read_range(edges, 2 * first, 2 * last).reshape(-1, 2)
                ends = (pairs[:, 0], pairs[:, 1])
            yield ends if weight is None else (*ends, read_range(weight, first, last))

    return blocks


def row_blocks(x: np.ndarray, rows: int, name: str) -> Iterator[np.ndarray]:
    """Iterate over blocks of rows of the features, float32 and finite."""
    n, f = x.shape
    if not x.flags.c_contiguous:
        raise UserError(
            f"{name}: the features are stored by columns; save them with np.ascontiguousarray."
        )
    for first in range(0, n, rows):
        last = min(first + rows, n)
        block = read_range(x, first * f, last * f).reshape(-1, f).astype(np.float32, copy=False)
        place = find_nonfinite(block)
        if place is not None:
            raise nonfinite_error(block[place], first + place[0], place[1], name)
        yield block


def read_range(array: np.ndarray, first: int, last: int) -> np.ndarray:
    """Read a range of an array's values.

    A file is read without its map, because pages of a map count as memory of the process.
    """
    if not isinstance(array, np.memmap) or array.filename is None:
        values: np.ndarray = array.reshape(-1)[first:last]
        return values
    offset = array.offset + first * array.itemsize
    return np.fromfile(array.filename, array.dtype, last - first, offset=offset)


def _map_stored(path: Path, info: zipfile.ZipInfo) -> np.ndarray | None:
    """Map an uncompressed member, or return ``None`` if it starts at an odd byte."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        name_length, extra_length = struct.unpack("<HH", file.read(30)[26:30])
        file.seek(name_length + extra_length, os.SEEK_CUR)
        shape, fortran, dtype = read_header(file)
        start = file.tell()
    if dtype.hasobject:
        raise UserError(
            f"{path}: {info.filename} contains Python objects, which are not loaded; "
            "save numbers or text."
        )
    if start % dtype.itemsize:
        return None
    shape = shape[::-1] if fortran else shape
    array = np.memmap(path, dtype, mode="c", offset=start, shape=shape)
    return array.T if fortran else array


def is_intact(target: Path, checksum: int) -> bool:
    """Whether a file in the cache exists and has the CRC-32 that it was written with.

    It is read for that only if it has changed since the last time.
    """
    if not target.is_file():
        return False
    stat = target.stat()
    identity = file_identity(stat)
    verified = target.with_suffix(".verified")
    if verified.is_file() and verified.read_text() == identity:
        return True
    if crc32(target) != checksum:
        return False
    if is_settled(stat):
        atomic_write(verified, identity)
    return True


def crc32(path: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(2**24):
            value = zlib.crc32(block, value)
    return value


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(target.parent).free
    if info.file_size > free:
        raise UserError(
            f"{archive.filename}: {info.filename} unpacks to {info.file_size:,} bytes, but "
            f"{target.parent} has {free:,} free; save the file without compression (np.savez)."
        )
    with (
        atomic_file(target, sync=False) as partial,
        archive.open(info) as source,
        partial.open("wb") as sink,
    ):
        shutil.copyfileobj(source, sink, 2**24)
