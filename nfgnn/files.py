"""Atomic writes: files and folders appear as a whole or not at all.

What is published is on disk before it gets its final name, so that a power failure leaves the old
content or the new one.
"""

import ctypes
import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nfgnn.errors import UserError

_LONGEST_NAME = 120
"""In bytes. Most systems allow 255, of which prefixes and suffixes take a part."""
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def atomic_folder(path: Path, sync: bool = True) -> Iterator[Path]:
    """Yield a folder to write into; it takes its final name when the block ends without error.

    Args:
        path: the final name.
        sync: wait until the content is on disk. Not needed inside a folder that is published later.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with unfinished(path, is_folder=True) as partial:
        yield partial
        publish(partial, path, sync)


def publish(partial: Path, path: Path, sync: bool = True) -> None:
    """Give a finished folder its final name, replacing what is there.

    The two folders change names in one step where the system supports it, so that at every moment
    one of them has the final name.
    """
    partial.chmod(0o755)
    if sync:
        sync_folder(partial)
    if not path.exists():
        partial.rename(path)
    elif _exchange(partial, path):
        _remove(partial)
    else:
        _replace(partial, path)
    if sync:
        sync_file(path.parent)


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name, then rename it."""
    with atomic_file(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def atomic_file(path: Path, sync: bool = True) -> Iterator[Path]:
    """Yield the path of a file to write; it takes its final name when the block ends.

    Args:
        path: the final name.
        sync: wait until the content is on disk.
    """
    with unfinished(path) as partial:
        yield partial
        if sync:
            sync_file(partial)
        partial.replace(path)


@contextmanager
def unfinished(path: Path, is_folder: bool = False) -> Iterator[Path]:
    """Yield a new file or folder beside ``path``; it is deleted if the block raises an error.

    It is locked while it is written. Those that nobody locks were left by processes that were
    killed, or by a disk that could not be written any more, and are deleted first.
    """
    _remove_leftovers(path)
    partial, handle = _create_locked(path, is_folder)
    try:
        yield partial
    except BaseException:
        with suppress(OSError):
            delete(partial)
        raise
    finally:
        os.close(handle)


def _create_locked(path: Path, is_folder: bool) -> tuple[Path, int]:
    """Return a new file or folder and the handle that locks it."""
    while True:
        # A name of its own for every writer.
        partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
        if is_folder:
            partial.mkdir(mode=0o700)
        else:
            partial.touch(exist_ok=False)  # respects the umask, unlike mkstemp
        handle = os.open(partial, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        # Another process may have taken it for a leftover before it was locked.
        if _is_same(handle, partial):
            return partial, handle
        os.close(handle)


def _remove_leftovers(path: Path) -> None:
    """Delete unfinished versions of a file or folder that no process is writing."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}\.partial")
    with suppress(OSError):
        for entry in path.parent.iterdir():
            if name.fullmatch(entry.name):
                _delete_unlocked(entry)


def _delete_unlocked(entry: Path) -> None:
    handle = os.open(entry, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        delete(entry)
    except BlockingIOError:
        pass  # another process is writing it
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Wait until all files and folders below a folder are on disk."""
    for parent, _, names in os.walk(folder):
        for name in names:
            sync_file(Path(parent, name))
        sync_file(Path(parent))


@contextmanager
def locked(folder: Path, message: str, wait: bool = False) -> Iterator[None]:
    """Lock a folder against other processes that call this function. Create it if necessary.

    Args:
        folder: the folder.
        message: the error if another process holds the lock.
        wait: wait for the other process instead.
    """
    handle = _open_folder(folder)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(message) from None
        if not _is_same(handle, folder):
            # Its owner has published or removed it since it was opened.
            raise UserError(message)
        yield
    finally:
        os.close(handle)


def refuse_foreign_files(folder: Path, ours: Callable[[str], bool], what: str) -> None:
    """Raise an error if replacing a folder would delete files that nfgnn has not written.

    Args:
        folder: the folder to replace; it need not exist.
        ours: whether nfgnn writes a file or folder of this name there.
        what: what the folder should be, such as ``"a run folder"``.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UserError(f"{folder} is a file, not {what}: choose another path")
    foreign = sorted(entry.name for entry in folder.iterdir() if not ours(entry.name))
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise UserError(
            f"{folder} holds files that nfgnn has not written ({', '.join(foreign[:3])}{more}), "
            f"so it was not replaced by {what}: choose another path, or move them away"
        )


def delete(entry: Path) -> None:
    """Delete a file, or a folder with its content."""
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()


def empty(folder: Path) -> None:
    """Delete everything in a folder, files before subfolders."""
    for entry in sorted(folder.iterdir(), key=Path.is_dir):
        delete(entry)


def expand_user(path: str | Path) -> Path:
    """Return a path with ``~`` and ``~NAME`` replaced by the home folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UserError(
            f"{path}: there is no such user, or the home folder is not known: write the whole path"
        ) from None


def safe_name(text: str) -> str:
    """Return a text as the name of a file: without separators, and not too long.

    Names that are fine are returned as they are.
    """
    name = "".join(c if c.isprintable() and c not in "/\\" else "_" for c in text)
    short = name.encode(errors="replace")[:_LONGEST_NAME].decode(errors="ignore")
    return short if short.strip(". ") else "graph"


def require_regular_file(path: Path) -> None:
    """Refuse a pipe, socket or device, which a reader would wait for or read without end."""
    if path.exists() and not path.is_file():
        kind = "folder" if path.is_dir() else "pipe, socket or device"
        raise UserError(f"{path}: is a {kind}, not a file; pass the path of a regular file.")


def _open_folder(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except (FileExistsError, NotADirectoryError):
        raise UserError(
            f"{folder} is a file, or its path contains one: choose another path"
        ) from None


def _is_same(handle: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), folder.stat())
    except FileNotFoundError:
        return False


def sync_file(path: Path) -> None:
    """Wait until a file or the entries of a folder are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; return whether the system can do it."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # not Linux, or an old C library
        return False
    names = os.fsencode(one), os.fsencode(other)
    status: int = renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)
    return status == 0


def _replace(partial: Path, path: Path) -> None:
    """Replace a folder in two steps. The old one returns if the second step fails."""
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
    path.rename(old / path.name)
    try:
        partial.rename(path)
    except BaseException:
        (old / path.name).rename(path)
        old.rmdir()
        raise
    shutil.rmtree(old, ignore_errors=True)


def _remove(folder: Path) -> None:
    """Delete a folder, files before subfolders.

    If this is interrupted, the rest has lost the file that describes it and is not taken for
    finished work.
    """
    if folder.is_symlink():
        folder.unlink()
        return
    for entry in sorted(folder.iterdir()):
        if not entry.is_dir():
            entry.unlink()
    shutil.rmtree(folder, ignore_errors=True)
