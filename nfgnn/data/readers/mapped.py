"""Arrays inside an ``.npz`` file as memory maps.

An ``.npz`` is a zip of ``.npy`` files. A member that is stored as it is can be mapped in place; one that is
compressed (or starts at an odd byte) is unpacked once, in a stream, into the cache folder and mapped there.
"""

import hashlib
import os
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np

from nfgnn.data.paths import cache_folder
from nfgnn.errors import UserError


def scratch_folder(name: str, source: Path) -> Path:
    """Where the unpacked parts of a file go; another file of the same name gets another folder."""
    stat = source.stat()
    mark = hashlib.sha256(
        f"{source.resolve()} {stat.st_size} {stat.st_mtime_ns}".encode()
    ).hexdigest()[:12]
    return cache_folder() / "mapped" / f"{name}-{mark}"


def map_member(path: Path, key: str, scratch: Path) -> np.ndarray:
    """Map one array of an ``.npz``; pages are read when looked at, and changes never reach the file."""
    try:
        with zipfile.ZipFile(path) as archive:
            if f"{key}.npy" not in archive.namelist():
                raise UserError(
                    f"{path}: there is no key {key!r} (found: {', '.join(archive.namelist())})."
                )
            info = archive.getinfo(f"{key}.npy")
            if info.compress_type == zipfile.ZIP_STORED:
                found = _map_stored(path, info)
                if found is not None:
                    return found
            target = scratch / f"{path.stem}-{key}.npy"
            if not target.is_file():
                _unpack(archive, info, target)
    except (zipfile.BadZipFile, EOFError) as error:
        raise UserError(f"{path}: is damaged ({error}); download it again.") from None
    unpacked: np.ndarray = np.load(target, mmap_mode="c", allow_pickle=False)
    return unpacked


def _map_stored(path: Path, info: zipfile.ZipInfo) -> np.ndarray | None:
    with path.open("rb") as file:
        file.seek(info.header_offset)
        name_length, extra_length = struct.unpack("<HH", file.read(30)[26:30])
        file.seek(name_length + extra_length, os.SEEK_CUR)
        version = np.lib.format.read_magic(file)
        read_header = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, fortran, kind = read_header(file)
        if kind.hasobject:
            raise UserError(
                f"{path}: {info.filename} holds Python objects, which are never loaded."
            )
        if file.tell() % kind.itemsize:
            return None
        return np.memmap(
            path, kind, mode="c", offset=file.tell(), shape=shape, order="F" if fortran else "C"
        )


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with archive.open(info) as source, partial.open("wb") as sink:
            shutil.copyfileobj(source, sink, 2**24)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
