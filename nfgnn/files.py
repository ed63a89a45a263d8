"""Atomic writes: files and folders appear as a whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nfgnn.errors import UserError

_LONGEST_NAME = 120
"""In bytes. Most systems allow 255, of which prefixes and suffixes take a part."""


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to write into; it takes its final name when the block ends without error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    try:
        yield partial
        publish(partial, path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def publish(partial: Path, path: Path) -> None:
    """Rename a finished folder to its final name, replacing what is there."""
    partial.chmod(0o755)
    if not path.exists():
        partial.rename(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
    path.rename(old / path.name)
    partial.rename(path)
    shutil.rmtree(old, ignore_errors=True)


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name, then rename it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    partial.replace(path)


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
        raise UserError(f"{folder} is a file, not {what}: name another path")
    foreign = sorted(entry.name for entry in folder.iterdir() if not ours(entry.name))
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise UserError(
            f"{folder} holds files that nfgnn has not written ({', '.join(foreign[:3])}{more}), "
            f"so it is not replaced by {what}: name another path, or move them away"
        )


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
