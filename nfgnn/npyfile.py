"""Read and write rows of ``.npy`` files without mapping them into memory.

The pages of a memory map count as memory of the process for as long as they are mapped. Rows that
are read into a buffer do not, so files of any size can be processed within a memory budget.
"""

import errno
import os
from collections.abc import Sequence
from math import prod
from pathlib import Path
from tokenize import TokenError

import numpy as np

from nfgnn.errors import UserError, system_error

_HEADER_BYTES = 128  # the same for every shape, so that finish() can change the number of rows
_CHUNK_BYTES = 2**28  # passed to one system call


class NpyFile:
    """An array ``[rows, ...]`` in C order on disk, opened with :meth:`create` or :meth:`open`.

    Example:
        >>> with NpyFile.create(path, np.float32, (1000, 8)) as file:
        ...     file.write(500, rows)
        ...     file.finish()
    """

    def __init__(
        self, path: Path, descriptor: int, dtype: np.dtype, shape: Sequence[int], start: int
    ) -> None:
        self.path = path
        self.dtype = dtype
        self.shape = tuple(shape)
        self.start = start
        """Position of the first row in the file."""
        self._descriptor = descriptor
        self._row_bytes = dtype.itemsize * prod(self.shape[1:])

    @classmethod
    def create(
        cls, path: Path, dtype: type[np.generic] | np.dtype, shape: Sequence[int]
    ) -> "NpyFile":
        """Open a file for writing. Existing rows are kept, so that work can be resumed."""
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        file = cls(path, descriptor, np.dtype(dtype), shape, _HEADER_BYTES)
        file._write_header()
        return file

    @classmethod
    def open(cls, path: Path, remedy: str = "create the file again") -> "NpyFile":
        """Open a file for reading, and check that it has the size that its header states.

        Args:
            path: the file.
            remedy: what the user can do if it is damaged, for the message.
        """
        if not path.is_file():  # opening a named pipe would wait forever
            raise UserError(f"{path}: is missing, or not a file; {remedy}")
        try:
            with path.open("rb") as stream:
                if np.lib.format.read_magic(stream) == (1, 0):
                    header = np.lib.format.read_array_header_1_0(stream)
                else:
                    header = np.lib.format.read_array_header_2_0(stream)
                start = stream.tell()
        except OSError as error:
            raise system_error(error, path) from None
        except (ValueError, SyntaxError, TypeError, TokenError) as error:
            raise UserError(f"{path}: cannot be read as an array ({error}); {remedy}") from None
        shape, fortran_order, dtype = header
        if any(size < 0 for size in shape):
            raise UserError(f"{path}: has a negative size; {remedy}")
        if dtype.hasobject or (fortran_order and len(shape) > 1):
            raise UserError(
                f"{path}: an array of type {dtype} in this memory order cannot be read row by "
                "row; save it as a numeric array in C order (np.ascontiguousarray)"
            )
        if not shape:
            raise UserError(f"{path}: is a single number without rows; create the file again")
        if path.stat().st_size < start + dtype.itemsize * prod(shape):
            raise UserError(f"{path}: is truncated; {remedy}")
        return cls(path, os.open(path, os.O_RDONLY), dtype, shape, start)

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, first: int, last: int, out: np.ndarray | None = None) -> np.ndarray:
        """Return rows ``first`` to ``last``.

        Args:
            first: the first row.
            last: the row after the last one.
            out: a contiguous array of the same type to read into.
        """
        if out is None:
            rows = np.empty((last - first, *self.shape[1:]), self.dtype)
        else:
            rows = out[: last - first]
        data = as_bytes(rows)
        position = self.start + first * self._row_bytes
        while len(data):
            try:
                count = os.preadv(self._descriptor, [data[:_CHUNK_BYTES]], position)
            except OSError as error:
                raise system_error(error, self.path) from None
            if count == 0:
                raise UserError(f"{self.path}: is truncated; create the file again")
            data = data[count:]
            position += count
        return rows

    def read_all(self) -> np.ndarray:
        """Return all rows."""
        return self.read(0, len(self))

    def write(self, first: int, rows: np.ndarray) -> None:
        """Write ``rows`` at row ``first``."""
        position = self.start + first * self._row_bytes
        self._write_bytes(as_bytes(np.ascontiguousarray(rows, self.dtype)), position)

    def finish(self, rows: int | None = None) -> None:
        """Set the final number of rows and wait until all data is on disk."""
        if rows is not None:
            self.shape = (rows, *self.shape[1:])
            self._write_header()
        os.ftruncate(self._descriptor, self.start + self._row_bytes * len(self))
        self.sync()

    def sync(self) -> None:
        """Wait until all data is on disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> "NpyFile":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _write_header(self) -> None:
        fields = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": self.shape,
        }
        text = repr(fields).encode().ljust(_HEADER_BYTES - 11) + b"\n"
        size = (_HEADER_BYTES - 10).to_bytes(2, "little")
        self._write_bytes(memoryview(b"\x93NUMPY\x01\x00" + size + text), 0)

    def _write_bytes(self, data: memoryview, position: int) -> None:
        try:
            while len(data):
                count = os.pwrite(self._descriptor, data[:_CHUNK_BYTES], position)
                data = data[count:]
                position += count
        except OSError as error:
            raise disk_full(error, self.path) from None


def disk_full(error: OSError, path: Path) -> OSError | UserError:
    """Return a :class:`UserError` if a write failed for lack of space, else ``error`` itself."""
    if error.errno not in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
        return error
    return UserError(
        f"{path}: the disk is full ({error.strerror}); free some space and run the same command "
        "again to resume"
    )


def as_bytes(array: np.ndarray) -> memoryview:
    """Return the bytes of a contiguous array without a copy."""
    return array.reshape(-1).view(np.uint8).data


class BufferedReader:
    """Read ranges of a file into one buffer, which grows to the largest range.

    New buffers would be returned to the system and cleared by it for every range.
    """

    def __init__(self, file: NpyFile) -> None:
        self._file = file
        self._buffer = np.empty((0, *file.shape[1:]), file.dtype)

    def read(self, first: int, last: int) -> np.ndarray:
        """Return a range of rows, which is valid until the next one is read."""
        if last - first > len(self._buffer):
            self._buffer = np.empty((last - first, *self._file.shape[1:]), self._file.dtype)
        return self._file.read(first, last, out=self._buffer)
