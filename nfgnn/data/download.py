"""Fetch what is not on the machine: under a temporary name, checked, then renamed.

A file appears under its own name only when it is complete, so an interrupted download is never taken for a
dataset.
"""

import hashlib
import os
import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nfgnn.data.entry import Entry
from nfgnn.data.paths import cache_folder
from nfgnn.errors import UserError

_CHUNK = 2**20


def download(entry: Entry) -> Path:
    """Bring the raw files of a dataset into the cache folder; return the folder they are in."""
    folder = cache_folder() / "raw" / entry.folder
    known = _checksums()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, url in entry.urls.items():
            target = folder / file
            if not target.is_file():
                fetch(url, target, known.get(f"{entry.folder}/{file}"))
                if entry.archive:
                    _unpack(target, folder)
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(
            f"{entry.title} cannot be downloaded ({reason}). {how_to_place(entry)}"
        ) from None
    absent = [file for file in entry.required if not (folder / file).is_file()]
    if absent:
        raise UserError(
            f"{entry.title}: the archive lacks {', '.join(absent)}. {how_to_place(entry)}"
        )
    return folder


def how_to_place(entry: Entry) -> str:
    """What to put where when there is no network."""
    folder = cache_folder() / "raw" / entry.folder
    root = f"or into {entry.folder} below the folder that --root or NFGNN_DATA names"
    fetched = ", ".join(
        sorted(
            {url.rpartition("/")[0] if len(entry.urls) > 1 else url for url in entry.urls.values()}
        )
    )
    return f"Put the files {', '.join(entry.required)} into {folder} ({root}). They are published at: {fetched}"


def fetch(url: str, target: Path, sha256: str | None = None) -> None:
    """Download one file with a progress bar on standard error."""
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    request = urllib.request.Request(url, headers={"User-Agent": "nfgnn"})
    digest, received = hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(request, timeout=30) as reply, partial.open("wb") as sink:
            expected = int(reply.headers.get("Content-Length") or 0)
            with _progress(target.name, expected) as advance:
                while chunk := reply.read(_CHUNK):
                    sink.write(chunk)
                    digest.update(chunk)
                    received += len(chunk)
                    advance(len(chunk))
        _check(partial, target.name, received, expected, digest.hexdigest(), sha256)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _check(
    partial: Path, name: str, received: int, expected: int, found: str, sha256: str | None
) -> None:
    if expected and received != expected:
        raise UserError(
            f"{name}: the download stopped at {received:,} of {expected:,} bytes; try again."
        )
    if sha256 is not None and found != sha256:
        raise UserError(
            f"{name}: the download is not the published file (its SHA-256 is {found}, not {sha256})."
        )
    with partial.open("rb") as file:
        if file.read(256).lstrip()[:9].lower() in (b"<!doctype", b"<html>\n<h", b"<html><he"):
            raise UserError(f"{name}: the address answered with a web page instead of the file.")


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip with one top folder into ``folder``, then remove it."""
    staging = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    try:
        with zipfile.ZipFile(archive) as content:
            content.extractall(staging)  # refuses to leave the folder
        inner = [path for path in staging.iterdir() if path.is_dir()]
        top = inner[0] if len(inner) == 1 and inner[0].name not in ("raw", "split") else staging
        for path in top.iterdir():
            shutil.rmtree(folder / path.name, ignore_errors=True)
            path.replace(folder / path.name)
        archive.unlink()
    except zipfile.BadZipFile:
        archive.unlink()
        raise UserError(f"{archive.name}: the download is not a zip archive; try again.") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _checksums() -> dict[str, str]:
    """SHA-256 of the published files that we have seen, by path below a data root."""
    lines = (Path(__file__).parent / "checksums.txt").read_text().splitlines()
    return {path: digest for digest, path in (line.split(maxsplit=1) for line in lines)}


@contextmanager
def _progress(name: str, total: int) -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=total or None)
        yield lambda size: bar.update(task, advance=size)
