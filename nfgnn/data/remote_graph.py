"""Graphs that are given by a URL, such as ``s3://bucket/graph``.

They are copied to the cache folder. The name of the copy contains a hash of the sizes and versions
of the files, so a file that has changed is copied again.
"""

import hashlib
import re
from pathlib import Path

from nfgnn.data.paths import cache_folder
from nfgnn.errors import UserError, writing
from nfgnn.files import empty, expand_user, locked, safe_name
from nfgnn.object_store import RemoteFile, RemoteFolder, is_remote
from nfgnn.progress import Progress

_FILES = (".npz", ".pt", ".pth", ".safetensors")
_FOLDER_FILES = re.compile(r"(nodes|edges)\.(csv|tsv|parquet)|[a-z_]+\.npy")
"""The files of a graph that is a folder. No other file is copied."""


def local_path(source: str | Path) -> Path:
    """Return the path of a graph, and copy it to the cache folder if it is given by a URL."""
    if isinstance(source, Path) or not is_remote(source):
        return expand_user(source)
    remote = RemoteFolder.open(source)
    if remote.is_file():
        return _fetch_file(remote)
    return _fetch_folder(remote)


def _fetch_file(remote: RemoteFolder) -> Path:
    if Path(remote.name).suffix.lower() not in _FILES:
        raise UserError(
            f"{remote.url}: graphs are read from a {', '.join(_FILES)} file, or from a folder with "
            "nodes.csv and edges.csv (or .parquet); pass the URL of the folder"
        )
    folder = remote.parent()
    file = RemoteFile(remote.name, 0)
    name = safe_name(remote.name)
    return _fetch(folder, [file], remote.url, {remote.name: name}) / name


def _fetch_folder(remote: RemoteFolder) -> Path:
    found = remote.files()
    files = [file for file in found if _FOLDER_FILES.fullmatch(file.name)]
    if any(file.name == "terms.npy" for file in files):
        raise UserError(
            f"{remote.url} is an unfinished store: run the same `nfgnn precompute` command again "
            "to complete it"
        )
    if not files:
        raise UserError(
            f"{remote.url}: contains no graph; pass the URL of a folder with nodes.csv and "
            f"edges.csv (or .parquet), or of a {', '.join(_FILES)} file"
        )
    folder = safe_name(remote.name)
    names = {file.name: f"{folder}/{file.name}" for file in files}
    return _fetch(remote, files, remote.url, names) / folder


def _fetch(remote: RemoteFolder, files: list[RemoteFile], url: str, names: dict[str, str]) -> Path:
    """Copy files and return the folder of the copies.

    Args:
        remote: where they are.
        files: what is copied.
        url: of the graph.
        names: the paths of the copies below the returned folder.
    """
    versions = _versions(remote, files)
    text = "\n".join([url, *versions])
    folder = cache_folder() / "graphs" / hashlib.sha256(text.encode()).hexdigest()[:32]
    busy = f"another process is copying {url}: wait for it"
    with writing(folder), locked(folder, busy, wait=True):
        missing = [file for file in files if not (folder / names[file.name]).is_file()]
        if not missing:
            return folder
        with Progress() as progress:
            done = 0
            total = sum(file.size for file in missing)

            def report(count: int) -> None:
                nonlocal done
                done += count
                progress.stage(f"copying {url}", done, max(done, total))

            for file in missing:
                target = folder / names[file.name]
                target.parent.mkdir(exist_ok=True)
                remote.download(file.name, target, report)
        if _versions(remote, files) != versions:
            empty(folder)
            raise UserError(f"{url}: changed while it was read; run the same command again")
    return folder


def _versions(remote: RemoteFolder, files: list[RemoteFile]) -> list[str]:
    return [f"{file.name} {remote.version(file.name)}" for file in files]
