"""Notice that the files of a store change while they are mapped into memory."""

import os
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nfgnn.errors import UserError


class UnusableStoreError(UserError):
    """A store that was changed or damaged after it was opened."""


class OpenedFiles:
    """Files that are held open, to notice when their content changes.

    A file that is deleted, or replaced by a new file of its name, keeps its content for those who
    have opened it. A file that is written in place does not, and whoever reads the missing part of
    a truncated one through a memory map is ended by the signal SIGBUS.

    Args:
        paths: the files.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._handles: dict[Path, int] = {}
        weakref.finalize(self, _close, self._handles)
        for path in paths:
            self._handles[path] = os.open(path, os.O_RDONLY)
        self._states = {path: _state(handle) for path, handle in self._handles.items()}

    def check(self) -> None:
        """Raise :class:`UnusableStoreError` if a file was changed in place."""
        for path, handle in self._handles.items():
            if _state(handle) != self._states[path]:
                raise UnusableStoreError(
                    f"{path}: was changed while it was open; verify the store (`nfgnn verify`) and "
                    "open it again"
                )

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Check the files before and after a block. Their change is the cause of other errors."""
        self.check()
        try:
            yield
        finally:
            self.check()


def _state(handle: int) -> tuple[int, int]:
    found = os.fstat(handle)
    return found.st_size, found.st_mtime_ns


def _close(handles: dict[Path, int]) -> None:
    for handle in handles.values():
        os.close(handle)
