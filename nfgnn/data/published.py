"""Compare raw files with the published ones, at every load.

``checksums.txt`` lists the SHA-256, the size and the path below a data root of every published file
that we could compute them for. Hashing all files would make the load of a cached graph several
times slower. The hashes of a data set's files are therefore remembered in the cache folder, under
a name that changes with the files' inodes, sizes and times. The time of the last change of
the inode (ctime) is one of them: no program can set it, so a file that was overwritten and given
its old modification time is hashed again.
"""

import contextlib
import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nfgnn.data.paths import cache_folder, file_identity, is_settled
from nfgnn.data.registry import Entry
from nfgnn.errors import UserError, system_error
from nfgnn.files import atomic_write

_SMALL = 2**26  # bytes; hashing a large graph would take longer than opening it


@dataclass(frozen=True)
class PublishedFile:
    """What is recorded about a published file."""

    sha256: str
    size: int


@cache
def published_files() -> dict[str, PublishedFile]:
    """Return the published files by their path below a data root."""
    files = {}
    for line in (Path(__file__).parent / "checksums.txt").read_text().splitlines():
        sha256, size, path = line.split(maxsplit=2)
        files[path] = PublishedFile(sha256, int(size))
    return files


def published_file(entry: Entry, file: str) -> PublishedFile | None:
    """Return what is recorded about a raw file of a data set, ``None`` if nothing is."""
    return published_files().get(f"{entry.folder}/{file}")


def check_raw_files(entry: Entry, folder: Path) -> list[str]:
    """Return the SHA-256 of all raw files; refuse a file that differs from the published one."""
    try:
        return _compare_raw_files(entry, folder)
    except OSError as error:
        raise system_error(error) from None


def check_small_files(entry: Entry, folder: Path) -> None:
    """Compare the raw files of a graph that stays on disk: all by size, small ones by hash."""
    try:
        _compare_small_files(entry, folder)
    except OSError as error:
        raise system_error(error) from None


def _compare_small_files(entry: Entry, folder: Path) -> None:
    for file in entry.raw_files(folder):
        path = folder / file
        recorded = published_file(entry, file)
        if recorded is None:
            continue
        size = path.stat().st_size
        if recorded.size != size:
            found = f"it has {size:,} bytes, the published file has {recorded.size:,}"
            raise _differs(entry, path, found)
        if size <= _SMALL and _sha256(path) != recorded.sha256:
            raise _differs(entry, path, "its SHA-256 is not that of the published file")


def _compare_raw_files(entry: Entry, folder: Path) -> list[str]:
    files = entry.raw_files(folder)
    stats = [(folder / file).stat() for file in files]
    published = [published_file(entry, file) for file in files]
    for file, recorded, stat in zip(files, published, stats):
        if recorded is not None and recorded.size != stat.st_size:
            found = f"it has {stat.st_size:,} bytes, the published file has {recorded.size:,}"
            raise _differs(entry, folder / file, found)
    hashes = _content_hashes(entry, folder, files, stats)
    for file, recorded, sha256 in zip(files, published, hashes):
        if recorded is not None and recorded.sha256 != sha256:
            found = f"its SHA-256 is {sha256}, that of the published file is {recorded.sha256}"
            raise _differs(entry, folder / file, found)
    return hashes


def _differs(entry: Entry, path: Path, found: str) -> UserError:
    if path.is_relative_to(cache_folder()):
        fix = "Delete the file to download it again."
    else:
        url = entry.urls.get(path.name, "its source")
        fix = f"Replace it with the file from {url}."
    return UserError(
        f"{entry.name}: {path} is damaged or was modified: {found}. {fix} To load your own "
        "graph, pass the path of a folder with nodes.csv and edges.csv, or of an .npz file."
    )


def _content_hashes(
    entry: Entry, folder: Path, files: tuple[str, ...], stats: list[os.stat_result]
) -> list[str]:
    """Return the SHA-256 of every raw file, from the cache folder if no file has changed."""
    # Device and inode identify a file, so its path is not needed.
    signature = " ".join(file_identity(stat) for stat in stats)
    digest = hashlib.sha256(signature.encode()).hexdigest()
    remembered = cache_folder() / "hashes" / f"{entry.name}-{digest[:32]}.txt"
    hashes: list[str] = []
    if remembered.is_file():  # a pipe in its place would never end
        with contextlib.suppress(OSError, ValueError):
            hashes = remembered.read_text().split()
    if len(hashes) == len(stats):
        return hashes
    hashes = [_sha256(folder / file) for file in files]
    if all(is_settled(stat) for stat in stats):
        _remember(hashes, remembered)
    return hashes


def _remember(hashes: list[str], target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(target, "\n".join(hashes))
    except OSError:  # a cache that cannot be written never fails a load
        pass


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
