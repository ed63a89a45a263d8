"""The folders in which raw files are looked up, and the cache folder.

The order is the ``root`` argument, the environment variable ``NFGNN_DATA``, the cache folder. Data
roots are only read; downloads and processed graphs are written below the cache folder.
"""

import hashlib
import os
import time
from pathlib import Path

from nfgnn.errors import UserError
from nfgnn.files import expand_user

_SETTLED = 2.0  # seconds; a file changed twice within a tick of the clock keeps its times


def cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/nfgnn``, by default ``~/.cache/nfgnn``."""
    parent = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return expand_user(parent) / "nfgnn"


def data_roots(root: str | Path | None) -> list[Path]:
    """Return the data roots in the order in which they are searched."""
    if root is not None and not expand_user(root).is_dir():
        raise UserError(f"the data root {root} is not a folder; create it, or omit --root.")
    environment = os.environ.get("NFGNN_DATA") or None
    candidates = (root, environment, cache_folder() / "raw")
    return [expand_user(folder) for folder in candidates if folder is not None]


def file_signature(file: Path) -> str:
    """Return the place, inode, size and times of a file, which change with its content.

    No program can set the time of the last change of the inode (ctime). A file that was changed and
    given its old modification time therefore has another signature.
    """
    stat = file.stat()
    times = f"{stat.st_mtime_ns} {stat.st_ctime_ns}"
    return f"{file.resolve()} {stat.st_ino} {stat.st_size} {times}"


def files_fingerprint(*files: Path) -> str:
    """Return a hash of the signatures of files that are too large to be hashed themselves."""
    lines = "".join(f"{file_signature(file)}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def file_identity(stat: os.stat_result) -> str:
    """Return a text that changes whenever a file is changed or replaced."""
    parts = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    return "-".join(map(str, parts))


def is_settled(stat: os.stat_result) -> bool:
    """Whether the next change of a file will change its :func:`file_identity`."""
    return time.time() - stat.st_ctime > _SETTLED
