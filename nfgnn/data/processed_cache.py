"""The cache of processed graphs, so that raw files are parsed once.

A processed graph is a file of plain tensors in the cache folder. Its name contains a hash of the
raw files' content and of the format, so a changed file is always read again. A checksum beside it
reveals damage; it is compared when the times of the file have changed. An unreadable or unwritable
cache never fails a load.
"""

import contextlib
import hashlib
import warnings
from pathlib import Path

import torch
from torch_geometric.data import Data

from nfgnn.data.paths import cache_folder, file_identity, is_settled
from nfgnn.data.registry import Entry
from nfgnn.files import atomic_file, atomic_write

_FORMAT = 2  # increase it when validation or a reader changes its result


def load_processed(entry: Entry, hashes: list[str]) -> Data | None:
    """Return the processed graph of the raw files with these hashes, if it is in the cache."""
    path = _path(entry, hashes)
    if not path.is_file():
        return None
    try:
        if not _is_intact(path):
            return None
        with warnings.catch_warnings(), torch.sparse.check_sparse_tensor_invariants():
            warnings.simplefilter("ignore", UserWarning)  # CSR tensors are in beta
            return Data.from_dict(torch.load(path, weights_only=True))
    except Exception:  # whatever is wrong with the file, the raw files can be read again
        return None


def save_processed(entry: Entry, hashes: list[str], data: Data) -> None:
    """Store a processed graph in the cache, if the cache is writable."""
    path = _path(entry, hashes)
    with contextlib.suppress(OSError, RuntimeError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path, sync=False) as partial:
            torch.save(data.to_dict(), partial)
            atomic_write(_checksum_file(path), _sha256(partial))


def _is_intact(path: Path) -> bool:
    """Compare a file with its checksum, if it has changed since the last comparison."""
    checksum = _checksum_file(path)
    if not checksum.is_file():  # a pipe in its place would never end
        return False
    expected, *verified = checksum.read_text().split()
    stat = path.stat()
    signature = file_identity(stat)
    if verified == [signature]:
        return True
    if _sha256(path) != expected:
        return False
    if is_settled(stat):
        with contextlib.suppress(OSError):
            atomic_write(checksum, f"{expected} {signature}")
    return True


def _checksum_file(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _path(entry: Entry, hashes: list[str]) -> Path:
    parts = [f"{_FORMAT} {torch.__version__}", *hashes]
    digest = hashlib.sha256(" ".join(parts).encode()).hexdigest()
    return cache_folder() / "finished" / f"{entry.name}-{digest[:16]}.pt"
