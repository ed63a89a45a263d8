"""Files and folders that are there whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to write into that takes its name only when the block has ended well; an older one is replaced."""
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
    if path.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
        path.rename(old / path.name)
        partial.rename(path)
        shutil.rmtree(old, ignore_errors=True)
    else:
        partial.rename(path)


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name, then rename it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    partial.replace(path)
