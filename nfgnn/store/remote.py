"""Stores on object storage, which are copied to the cache folder for reading.

The files of a remote store are those of a local one. The manifest is uploaded last, so that an
interrupted upload is not a store. A copy in the cache folder is named after the checksum of the
manifest, and every file is compared with its checksums when it has been copied.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nfgnn.data import cache_folder
from nfgnn.errors import UserError, writing
from nfgnn.existing_output import refuse_replacement
from nfgnn.files import atomic_write, locked
from nfgnn.object_store import RemoteFolder, is_remote
from nfgnn.progress import Progress
from nfgnn.store.file_format import file_checksums, write_json
from nfgnn.store.manifest import FILE, Manifest
from nfgnn.store.source import Report

_READ_BYTES = 2**22
_REMEDY = "upload the store again"


def is_remote_store(url: str) -> bool:
    """Whether a URL is that of a complete store."""
    return RemoteFolder.open(url).has(FILE)


def fetch_store(url: str, again: bool = False) -> Path:
    """Copy a store to the cache folder, unless it is there, and return the folder.

    Several processes may call this at the same time: one of them copies, the others wait.

    Args:
        url: of the store.
        again: compare the files of an existing copy with their checksums.
    """
    remote = RemoteFolder.open(url)
    text = remote.read(FILE)
    manifest = Manifest.parse(text, remote.join(FILE))
    folder = _copy_folder(text)
    busy = f"another process is copying {url}: wait for it"
    with writing(folder), locked(folder, busy, wait=True):
        if again:
            (folder / FILE).unlink(missing_ok=True)
        if not (folder / FILE).is_file():
            _fetch_files(remote, manifest, folder)
            atomic_write(folder / FILE, text)
    return folder


def _copy_folder(manifest: bytes) -> Path:
    return cache_folder() / "stores" / hashlib.sha256(manifest).hexdigest()[:32]


def _fetch_files(remote: RemoteFolder, manifest: Manifest, folder: Path) -> None:
    missing = []
    for name in manifest.checksums:
        file = folder / f"{name}.npy"
        if not file.is_file() or _damaged_block(manifest, name, file) is not None:
            missing.append(name)
    sizes = {file.name: file.size for file in remote.files()}
    total = sum(sizes.get(f"{name}.npy", 0) for name in missing)
    free = shutil.disk_usage(folder).free
    if total > free:
        raise UserError(
            f"{remote.url}: {total / 1e9:.1f} GB are copied to {folder}, but only "
            f"{free / 1e9:.1f} GB are free; free some space, or set XDG_CACHE_HOME to a folder on "
            "a larger disk"
        )
    done = 0
    with Progress() as progress:

        def report(count: int) -> None:
            nonlocal done
            done += count
            progress.stage(f"copying {remote.url}", done, max(done, total))

        for name in missing:
            _fetch_file(remote, manifest, name, folder, report)


def _fetch_file(
    remote: RemoteFolder,
    manifest: Manifest,
    name: str,
    folder: Path,
    report: Callable[[int], None],
) -> None:
    file = folder / f"{name}.npy"
    resumed = remote.download(file.name, file, report)
    block = _damaged_block(manifest, name, file)
    if block is not None and resumed:
        # The damage may be in the part that an earlier call has copied.
        file.unlink()
        remote.download(file.name, file, report)
        block = _damaged_block(manifest, name, file)
    if block is not None:
        file.unlink()
        raise UserError(f"{remote.join(file.name)}: {_damage(manifest, name, block)}; {_REMEDY}")


def _damage(manifest: Manifest, name: str, block: int) -> str:
    return f"block {block} of {len(manifest.checksums[name])} is damaged"


def _damaged_block(manifest: Manifest, name: str, file: Path) -> int | None:
    """Return the first block of a local file whose checksum differs, if there is one."""
    try:
        found = file_checksums(file, _block_rows(manifest, name))
    except UserError:  # not an array
        found = []
    return _first_difference(manifest.checksums[name], found)


def _block_rows(manifest: Manifest, name: str) -> int | None:
    return manifest.block_rows if name in manifest.row_parts else None


def _first_difference(expected: list[str], found: list[str]) -> int | None:
    for block, checksum in enumerate(expected):
        if block >= len(found) or found[block] != checksum:
            return block
    return None


def verify_remote_store(url: str) -> tuple[int, dict[str, str]]:
    """Compare all files of a remote store with their checksums. Nothing is written.

    Returns:
        The number of files, and what is wrong, by the name of the file.
    """
    remote = RemoteFolder.open(url)
    manifest = Manifest.parse(remote.read(FILE), remote.join(FILE))
    present = {file.name for file in remote.files()}
    damaged = {}
    for name, expected in manifest.checksums.items():
        file = f"{name}.npy"
        if file not in present:
            damaged[file] = f"is missing; {_REMEDY}"
            continue
        with remote.reading(file) as stream:
            found = _stream_checksums(stream, _block_rows(manifest, name), len(expected))
        block = _first_difference(expected, found)
        if block is not None:
            damaged[file] = f"{_damage(manifest, name, block)}; {_REMEDY}"
    return 1 + len(manifest.checksums), damaged


def _stream_checksums(stream: BinaryIO, block_rows: int | None, count: int) -> list[str]:
    """Return the checksums of at most ``count`` blocks of an ``.npy`` file."""
    try:
        if np.lib.format.read_magic(stream) == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    except (ValueError, SyntaxError, TypeError):  # not an array
        return []
    left = dtype.itemsize * prod(shape)
    block_bytes = left
    if block_rows is not None:
        block_bytes = block_rows * dtype.itemsize * prod(shape[1:])
    found = []
    for _ in range(count):
        digest = hashlib.sha256()
        rest = min(block_bytes, left)
        left -= rest
        while rest > 0 and (data := stream.read(min(rest, _READ_BYTES))):
            digest.update(data)
            rest -= len(data)
        found.append(digest.hexdigest())
    return found


@dataclass(frozen=True)
class Upload:
    """A store that is computed in the cache folder and then uploaded.

    Args:
        remote: where the store is uploaded to.
        staging: its folder in the cache folder, the same for every call with this URL.
    """

    remote: RemoteFolder
    staging: Path

    @classmethod
    def to(cls, url: str) -> "Upload":
        """Return the upload to a URL."""
        remote = RemoteFolder.open(url)
        digest = hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:32]
        return cls(remote, cache_folder() / "uploads" / digest)

    @property
    def folder(self) -> Path:
        """Folder in which the store is computed."""
        return self.staging / "store"

    def is_complete(
        self, fingerprint: str, overwrite: bool, is_ours: Callable[[str], bool]
    ) -> bool:
        """Whether the remote store exists; raise an error if it must not be replaced.

        Args:
            fingerprint: of the store to write.
            overwrite: whether another store may be replaced.
            is_ours: whether a store contains files of this name.
        """
        names = [file.name for file in self.remote.files()]
        url = self.remote.url
        foreign = [name for name in names if not is_ours(name)]
        if foreign:
            raise UserError(
                f"{url} holds files that nfgnn has not written ({', '.join(foreign[:3])}), so it "
                "was not replaced by a store: choose another --out, or move them away"
            )
        if FILE not in names:
            return False
        if not overwrite:
            manifest = Manifest.parse(self.remote.read(FILE), self.remote.join(FILE))
            if manifest.fingerprint == fingerprint:
                return True
        refuse_replacement(url, "a store", ours=True, overwrite=overwrite)
        return False

    def has_computed(self, fingerprint: str) -> bool:
        """Whether the store has been computed and only remains to be uploaded."""
        if not (self.folder / FILE).is_file():
            return False
        return Manifest.read(self.folder).fingerprint == fingerprint

    def run(self, report: Report) -> None:
        """Upload the files, then the manifest, and keep the local copy for reading."""
        text = (self.folder / FILE).read_bytes()
        names = [f"{name}.npy" for name in Manifest.parse(text, FILE).checksums]
        # The files are about to change, and the old manifest would no longer describe them.
        if self.remote.has(FILE):
            self._forget()
            self.remote.delete(FILE)
        uploaded = self._uploaded(text)
        total = sum((self.folder / name).stat().st_size for name in names)
        done = 0

        def on_bytes(count: int) -> None:
            nonlocal done
            done += count
            report("uploading", done, total)

        for name in names:
            if name in uploaded:
                on_bytes((self.folder / name).stat().st_size)
                continue
            self.remote.upload(self.folder / name, name, on_bytes)
            uploaded[name] = self.remote.version(name)
            self._record(text, uploaded)
        self.remote.upload(self.folder / FILE, FILE, lambda count: None)
        self._keep_copy(text)

    @property
    def _record_file(self) -> Path:
        return self.staging / "upload.json"

    def _record(self, manifest: bytes, uploaded: dict[str, str]) -> None:
        digest = hashlib.sha256(manifest).hexdigest()
        write_json(self._record_file, {"manifest": digest, "files": uploaded})

    def _uploaded(self, manifest: bytes) -> dict[str, str]:
        """Return the versions of the files that an interrupted call has uploaded."""
        try:
            content = json.loads(self._record_file.read_text(encoding="utf-8"))
            if content["manifest"] != hashlib.sha256(manifest).hexdigest():
                return {}
            recorded = dict(content["files"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        present = {file.name for file in self.remote.files()}
        return {
            name: version
            for name, version in recorded.items()
            if name in present and self.remote.version(name) == version
        }

    def _forget(self) -> None:
        self._record_file.unlink(missing_ok=True)

    def _keep_copy(self, manifest: bytes) -> None:
        """Move the computed store to where :func:`fetch_store` finds it."""
        copy = _copy_folder(manifest)
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            self.folder.rename(copy)
        shutil.rmtree(self.staging, ignore_errors=True)


def local_folder(out: str | Path) -> Path:
    """Return the folder in which the store ``out`` is computed."""
    return Upload.to(out).folder if is_remote(out) else Path(out)
