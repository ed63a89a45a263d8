"""Finished graphs are kept, so that parsing (a text file of 20 MB, a gzipped CSV of gigabytes) happens once.

A finished graph is a file of plain tensors in the cache folder. Its name carries a mark of the raw files
(place, size, time of change) and of the format, so a changed file or another root is read anew. Nothing here
may ever fail a load.
"""

import contextlib
import hashlib
import os
import warnings
from pathlib import Path

import torch
from torch_geometric.data import Data

from nfgnn.data.entry import Entry
from nfgnn.data.paths import cache_folder

_FORMAT = 1  # raise it when the gate or a reader changes what comes out


def recall(entry: Entry, folder: Path) -> Data | None:
    """The finished graph of these raw files, if there is one."""
    path = _path(entry, folder)
    if not path.is_file():
        return None
    try:
        with warnings.catch_warnings():  # torch's notice that CSR is in beta
            warnings.simplefilter("ignore", UserWarning)
            with torch.sparse.check_sparse_tensor_invariants():
                return Data.from_dict(torch.load(path, weights_only=True))
    except Exception:  # whatever is wrong with the file, the raw ones are still there
        return None


def remember(entry: Entry, folder: Path, data: Data) -> None:
    """Keep a finished graph; a cache that cannot be written to is not an error."""
    path = _path(entry, folder)
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    with contextlib.suppress(OSError, RuntimeError):
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(data.to_dict(), partial)
        partial.replace(path)
    with contextlib.suppress(OSError):
        partial.unlink(missing_ok=True)


def _path(entry: Entry, folder: Path) -> Path:
    mark = hashlib.sha256(f"{_FORMAT} {torch.__version__}".encode())
    for file in entry.required:
        stat = (folder / file).stat()
        mark.update(f"{(folder / file).resolve()} {stat.st_size} {stat.st_mtime_ns}".encode())
    return cache_folder() / "finished" / f"{entry.name}-{mark.hexdigest()[:16]}.pt"
