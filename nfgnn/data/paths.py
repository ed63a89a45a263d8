"""Where raw files are looked for, and where our own files go.

The order: the ``root`` argument, the environment variable ``NFGNN_DATA``, the cache folder. Roots are only
ever read; whatever is written (downloads, finished graphs) goes below the cache folder.
"""

import os
from pathlib import Path

from nfgnn.data.entry import Entry
from nfgnn.errors import UserError


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/nfgnn``, by default ``~/.cache/nfgnn``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser() / "nfgnn"


def roots(root: str | Path | None) -> list[Path]:
    """The data roots in the order of look-up."""
    given = [root, os.environ.get("NFGNN_DATA") or None, cache_folder() / "raw"]
    if root is not None and not Path(root).expanduser().is_dir():
        raise UserError(f"the data root {root} is not a folder; make it, or leave the option out.")
    return [Path(place).expanduser() for place in given if place is not None]


def find(entry: Entry, root: str | Path | None = None) -> Path | None:
    """The folder that holds all raw files of the dataset, or ``None``.

    Below a root the files may lie as ``Planetoid/Cora/raw`` or, as a single dataset class leaves them, as
    ``Cora/raw``.
    """
    shorter = entry.folder.split("/", 1)[-1]
    for place in roots(root):
        for folder in (place / entry.folder, place / shorter):
            if all((folder / file).is_file() for file in entry.required):
                return folder
    return None


def is_available(entry: Entry, root: str | Path | None = None) -> bool:
    """Whether the dataset can be loaded without a download."""
    return find(entry, root) is not None
