"""``.npy`` files that are read and written by rows, at any place, without mapping them.

The pages of a memory map count as the process' memory for as long as they are mapped; bytes that are read into a buffer
do not stay. That is what lets work on files of any size keep to a budget.
"""

import errno
import os
from collections.abc import Sequence
from math import prod
from pathlib import Path
from types import TracebackType

import numpy as np

from nfgnn.errors import UserError

_HEADER = 128  # bytes, whatever the shape, so that the number of rows can be settled last
_PIECE = 2**28  # bytes handed to the system at a time


class NpyFile:
    """An array on disk: ``[rows, …]`` in C order. Use :meth:`create` or :meth:`open`, as a context or not."""

    def __init__(
        self, path: Path, file: int, dtype: np.dtype, shape: Sequence[int], start: int
    ) -> None:
        self.path, self._file, self.dtype, self.shape, self._start = (
            path,
            file,
            dtype,
            tuple(shape),
            start,
        )
        self._row = dtype.itemsize * prod(self.shape[1:])

    @classmethod
    def create(
        cls, path: Path, dtype: type[np.generic] | np.dtype, shape: Sequence[int]
    ) -> "NpyFile":
        """Open a file for writing; what it holds already stays, so that unfinished work can go on."""
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        array = cls(path, file, np.dtype(dtype), shape, _HEADER)
        array._put(np.frombuffer(_header(array.dtype, array.shape), np.uint8), 0)
        return array

    @classmethod
    def open(cls, path: Path) -> "NpyFile":
        """Open a file for reading; refuse one that is shorter than it says."""
        try:
            with path.open("rb") as stream:
                version = np.lib.format.read_magic(stream)
                read = (
                    np.lib.format.read_array_header_1_0
                    if version == (1, 0)
                    else np.lib.format.read_array_header_2_0
                )
                shape, fortran, dtype = read(stream)
                start = stream.tell()
        except (ValueError, OSError) as error:
            raise UserError(
                f"{path}: cannot be read as an array ({error}); make it again"
            ) from None
        if dtype.hasobject or (fortran and len(shape) > 1):
            raise UserError(
                f"{path}: holds {dtype} in an order that cannot be read by rows; write it anew with NumPy"
            )
        array = cls(path, os.open(path, os.O_RDONLY), dtype, shape, start)
        if path.stat().st_size < start + array._row * len(array):
            raise UserError(f"{path}: is cut short; make it again")
        return array

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, first: int, last: int, out: np.ndarray | None = None) -> np.ndarray:
        """Rows ``first`` to ``last``, into ``out`` if it is given (contiguous, of the array's type)."""
        rows = (
            np.empty((last - first, *self.shape[1:]), self.dtype)
            if out is None
            else out[: last - first]
        )
        data, place = _bytes(rows), self._start + first * self._row
        while len(data):
            got = os.preadv(self._file, [data[:_PIECE]], place)
            if not got:
                raise UserError(f"{self.path}: is cut short; make it again")
            data, place = data[got:], place + got
        return rows

    def write(self, first: int, rows: np.ndarray) -> None:
        """Put ``rows`` at row ``first``."""
        self._put(np.ascontiguousarray(rows, self.dtype), self._start + first * self._row)

    def finish(self, rows: int | None = None) -> None:
        """Settle the number of rows and wait until everything is on the disk."""
        if rows is not None:
            self.shape = (rows, *self.shape[1:])
            self._put(np.frombuffer(_header(self.dtype, self.shape), np.uint8), 0)
        os.ftruncate(self._file, self._start + self._row * len(self))
        self.sync()

    def sync(self) -> None:
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> "NpyFile":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _put(self, rows: np.ndarray, place: int) -> None:
        data = _bytes(rows)
        try:
            while len(data):
                written = os.pwrite(self._file, data[:_PIECE], place)
                data, place = data[written:], place + written
        except OSError as error:
            raise disk_full(error, self.path) from None


def disk_full(error: OSError, path: Path) -> OSError | UserError:
    """What to raise for an error of writing: the user's to mend where there is no room, else as it is."""
    if error.errno not in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
        return error
    return UserError(
        f"{path}: the disk is full ({error.strerror}); make room and run the same command again, it goes on where it "
        "stopped"
    )


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _header(dtype: np.dtype, shape: Sequence[int]) -> bytes:
    fields = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": tuple(shape),
    }
    text = repr(fields).encode().ljust(_HEADER - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little") + text
