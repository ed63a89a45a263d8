"""Find the raw files of a data set, or download them.

A download is written under a temporary name, checked, and then renamed, so an interrupted download
is never mistaken for a data set.
"""

import hashlib
import http.client
import shutil
import urllib.error
import urllib.request
import zipfile
import zlib
from pathlib import Path

from nfgnn.data.messages import first_line
from nfgnn.data.paths import cache_folder, data_roots
from nfgnn.data.published import published_file
from nfgnn.data.registry import Entry
from nfgnn.errors import UserError
from nfgnn.files import atomic_file, delete, unfinished
from nfgnn.progress import Progress

_CHUNK = 2**20  # bytes
_WEB_PAGE = (b"<!doctype", b"<html>\n<h", b"<html><he")  # first bytes, in lower case


def find_raw_files(entry: Entry, root: str | Path | None = None) -> Path | None:
    """Return the folder that contains all raw files of a data set, or ``None``.

    Below a data root the files may be in ``Planetoid/Cora/raw`` or, as a single class of PyTorch
    Geometric stores them, in ``Cora/raw``.
    """
    shorter = entry.folder.split("/", 1)[-1]
    for place in data_roots(root):
        for folder in (place / entry.folder, place / shorter):
            if all((folder / file).is_file() for file in entry.required):
                return folder
    return None


def is_available(entry: Entry, root: str | Path | None = None) -> bool:
    """Return whether a data set can be loaded without a download."""
    return find_raw_files(entry, root) is not None


def download(entry: Entry) -> Path:
    """Download the raw files of a data set to the cache folder, and return their folder."""
    folder = cache_folder() / "raw" / entry.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, url in entry.urls.items():
            target = folder / file
            # The file is there if an earlier call was killed before the archive was unpacked.
            if not target.is_file():
                published = published_file(entry, file)
                fetch(url, target, published.sha256 if published else None)
            if entry.archive and target.suffix == ".zip":
                _unpack(target, folder)
    except urllib.error.URLError as error:
        raise _failed(entry, error.reason) from None
    except http.client.IncompleteRead as error:
        received = f"the connection closed after {len(error.partial):,} bytes of a part"
        raise _failed(entry, f"{received}; try again") from None
    except (OSError, http.client.HTTPException) as error:
        raise _failed(entry, first_line(error)) from None
    missing = [file for file in entry.required if not (folder / file).is_file()]
    if missing:
        raise UserError(
            f"{entry.title}: the archive lacks {', '.join(missing)}. {_manual_download(entry)}"
        )
    return folder


def fetch(url: str, target: Path, sha256: str | None = None) -> None:
    """Download one file with a progress bar on standard error."""
    request = urllib.request.Request(url, headers={"User-Agent": "nfgnn"})
    digest = hashlib.sha256()
    received = 0
    # What a killed download has left is deleted here.
    with atomic_file(target) as partial:
        with urllib.request.urlopen(request, timeout=30) as reply, partial.open("wb") as sink:
            if url.startswith("https:") and not reply.url.startswith("https:"):
                raise UserError(
                    f"{target.name}: {url} redirects to {reply.url}, which does not use https."
                )
            length = reply.headers.get("Content-Length") or ""
            expected = int(length) if length.isdecimal() else 0
            with Progress() as progress:
                while chunk := reply.read(_CHUNK):
                    sink.write(chunk)
                    digest.update(chunk)
                    received += len(chunk)
                    progress.stage(target.name, received, expected)
        if expected and received != expected:
            raise UserError(
                f"{target.name}: the download stopped at {received:,} of {expected:,} bytes; "
                "try again."
            )
        if sha256 is not None and digest.hexdigest() != sha256:
            raise UserError(
                f"{target.name}: the download is not the published file "
                f"(its SHA-256 is {digest.hexdigest()}, not {sha256})."
            )
        # Google Drive and some proxies answer with an HTML page and status 200.
        with partial.open("rb") as file:
            if file.read(256).lstrip()[:9].lower() in _WEB_PAGE:
                raise UserError(f"{target.name}: the server sent a web page instead of the file.")


def _failed(entry: Entry, reason: object) -> UserError:
    return UserError(f"{entry.title} cannot be downloaded ({reason}). {_manual_download(entry)}")


def _manual_download(entry: Entry) -> str:
    """Explain where to put the files by hand."""
    folder = cache_folder() / "raw" / entry.folder
    addresses = list(entry.urls.values())
    if len(addresses) > 1:
        addresses = sorted({address.rpartition("/")[0] for address in addresses})
    return (
        f"Put the files {', '.join(entry.required)} into {folder} (or into {entry.folder} below "
        f"the folder of --root or NFGNN_DATA). They are published at: {', '.join(addresses)}"
    )


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip archive with one top folder into ``folder``, and remove it."""
    try:
        with unfinished(folder, is_folder=True) as staging:
            _extract(archive, staging)
            top = staging
            folders = [path for path in staging.iterdir() if path.is_dir()]
            if len(folders) == 1 and folders[0].name not in ("raw", "split"):
                top = folders[0]
            for path in top.iterdir():
                shutil.rmtree(folder / path.name, ignore_errors=True)
                path.replace(folder / path.name)
            archive.unlink()
            delete(staging)
    except (zipfile.BadZipFile, zlib.error, EOFError):
        archive.unlink()
        raise UserError(f"{archive.name}: the download is not a zip archive; try again.") from None


def _extract(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as content:
        unpacked = sum(info.file_size for info in content.infolist())
        free = shutil.disk_usage(folder).free
        if unpacked > free:
            raise UserError(
                f"{archive}: unpacks to {unpacked:,} bytes, but the disk has {free:,} free; "
                "free some space and run the same command again."
            )
        content.extractall(folder)  # never writes outside of the folder
