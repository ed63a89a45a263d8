"""Objects of S3, Google Cloud Storage and other remote file systems, given by their URL.

``pyarrow.fs`` opens ``s3://``, ``gs://``, ``abfs://`` and ``hdfs://``; all other schemes are those
of ``fsspec``. Credentials and the address of the server come from the environment, as for every
other program: ``AWS_ACCESS_KEY_ID``, ``AWS_PROFILE``, ``AWS_ENDPOINT_URL`` and so on.

Files are copied as a whole. A download that was interrupted continues where it stopped.
"""

import re
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

from nfgnn.errors import UserError
from nfgnn.files import sync_file

Report = Callable[[int], None]
"""Receives the number of bytes that were copied since the last call."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PASSWORD = re.compile(r"[^/?#]*:[^/?#]*@")
_AWS_CODE = re.compile(r"AWS Error ([A-Z_]+)")
_REQUEST_ID = re.compile(r" \(Request ID: [^)]*\)")
_LONGEST_REASON = 300
_CHUNK = 2**23  # bytes of one request
_REQUESTS = 8  # that run at a time
_CREDENTIALS = (
    "set credentials with access to the bucket (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
    "AWS_PROFILE)"
)
_REMEDIES = {
    "NETWORK_CONNECTION": "check the network, and the address of the server in AWS_ENDPOINT_URL",
    "NO_SUCH_BUCKET": "check the name of the bucket, or create the bucket",
    "ACCESS_DENIED": _CREDENTIALS,
    "INVALID_ACCESS_KEY_ID": _CREDENTIALS,
    "SIGNATURE_DOES_NOT_MATCH": _CREDENTIALS,
}
_REMEDY = "check the URL, the credentials and the network"


def is_remote(path: str | Path) -> TypeGuard[str]:
    """Whether a path is the URL of a remote file or folder, such as ``s3://bucket/key``."""
    return isinstance(path, str) and bool(_URL.match(path))


def check_url(url: str) -> None:
    """Refuse a URL with a password, which would be written into records and messages."""
    if _PASSWORD.match(_URL.sub("", url, count=1)):
        raise UserError(
            "the URL contains a password: pass credentials by environment variables, such as "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )


@dataclass(frozen=True)
class RemoteFile:
    """A file of a :class:`RemoteFolder`."""

    name: str
    size: int


@dataclass(frozen=True)
class RemoteFolder:
    """A remote folder, or a prefix of keys, opened with :meth:`open`.

    Args:
        url: as the user wrote it.
        filesystem: a ``pyarrow.fs.FileSystem``.
        path: the path in this file system.
    """

    url: str
    filesystem: Any
    path: str

    @classmethod
    def open(cls, url: str) -> "RemoteFolder":
        """Open a folder. The server is not contacted yet."""
        check_url(url)
        filesystem, path = _open_filesystem(url)
        if not path.strip("/"):
            raise UserError(f"{url}: names no bucket; write it as s3://bucket/key")
        return cls(url, filesystem, path.rstrip("/"))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    def parent(self) -> "RemoteFolder":
        """Return the folder that contains this file or folder."""
        url = self.url.rstrip("/").rpartition("/")[0]
        return RemoteFolder(url, self.filesystem, self.path.rpartition("/")[0])

    def join(self, name: str) -> str:
        """Return the URL of a file of the folder, for messages."""
        return f"{self.url.rstrip('/')}/{name}"

    def is_file(self) -> bool:
        """Whether the URL is that of a file."""
        from pyarrow.fs import FileType

        with remote_errors(self.url):
            return bool(self.filesystem.get_file_info(self.path).type == FileType.File)

    def files(self) -> list[RemoteFile]:
        """Return the files of the folder, without those of its subfolders."""
        from pyarrow.fs import FileSelector, FileType

        with remote_errors(self.url):
            try:
                found = self.filesystem.get_file_info(FileSelector(self.path))
            except FileNotFoundError:  # a missing bucket is another error
                return []
        files = [
            RemoteFile(info.base_name, info.size) for info in found if info.type == FileType.File
        ]
        return sorted(files, key=lambda file: file.name)

    def has(self, name: str) -> bool:
        """Whether the folder contains a file of this name."""
        from pyarrow.fs import FileType

        with remote_errors(self.join(name)):
            return bool(self.filesystem.get_file_info(self._key(name)).type == FileType.File)

    def version(self, name: str) -> str:
        """Return a text that changes with the content of a file."""
        with remote_errors(self.join(name)):
            info = self.filesystem.get_file_info(self._key(name))
            with self.filesystem.open_input_stream(self._key(name)) as stream:
                tag = (stream.metadata() or {}).get("ETag", b"")
        changed = tag.decode(errors="replace") or str(info.mtime_ns or secrets.token_hex(8))
        return f"{info.size} {changed}"

    def read(self, name: str) -> bytes:
        """Return the content of a small file."""
        with (
            remote_errors(self.join(name)),
            self.filesystem.open_input_stream(self._key(name)) as file,
        ):
            return bytes(file.read())

    @contextmanager
    def reading(self, name: str) -> Iterator[BinaryIO]:
        """Open a file, to be read from its start to its end."""
        with (
            remote_errors(self.join(name)),
            self.filesystem.open_input_stream(self._key(name), buffer_size=_CHUNK) as file,
        ):
            yield file

    def download(self, name: str, target: Path, report: Report) -> bool:
        """Copy a file to a local one, and return whether an earlier call had begun with it."""
        partial = target.with_name(f".{target.name}.part")
        with remote_errors(self.join(name)):
            source = self.filesystem.open_input_file(self._key(name))
            size = source.size()
        done = partial.stat().st_size if partial.is_file() else 0
        if done > size:
            done = 0
        report(done)
        with source, partial.open("ab") as sink:
            sink.truncate(done)
            for chunk in self._chunks(source, name, done, size):
                sink.write(chunk)
                report(len(chunk))
        sync_file(partial)
        partial.replace(target)
        return done > 0

    def _chunks(self, source: Any, name: str, first: int, size: int) -> Iterator[bytes]:
        """Yield the bytes of a file from a position on, which several requests read at a time."""

        def read(start: int) -> bytes:
            length = min(_CHUNK, size - start)
            with remote_errors(self.join(name)):
                data = bytes(source.read_at(length, start))
            if len(data) != length:
                raise UserError(f"{self.join(name)}: became shorter while it was read; try again")
            return data

        with ThreadPoolExecutor(_REQUESTS) as pool:
            starts = range(first, size, _CHUNK)
            # One group at a time, so that only its chunks are in memory.
            for group in range(0, len(starts), _REQUESTS):
                yield from pool.map(read, starts[group : group + _REQUESTS])

    def upload(self, file: Path, name: str, report: Report) -> None:
        """Copy a local file to the folder."""
        with file.open("rb") as source, remote_errors(self.join(name)):
            with self.filesystem.open_output_stream(self._key(name)) as sink:
                while chunk := source.read(_CHUNK):
                    sink.write(chunk)
                    report(len(chunk))
            size = self.filesystem.get_file_info(self._key(name)).size
        if size != file.stat().st_size:
            raise UserError(f"{self.join(name)}: is incomplete; run the same command again")

    def delete(self, name: str) -> None:
        """Delete a file."""
        with remote_errors(self.join(name)):
            self.filesystem.delete_file(self._key(name))

    def _key(self, name: str) -> str:
        return f"{self.path}/{name}"


@contextmanager
def remote_errors(url: str) -> Iterator[None]:
    """Report errors of a remote file system as one sentence with a remedy."""
    try:
        yield
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"{url}: does not exist; check the bucket and the key") from None
    except (OSError, ValueError, NotImplementedError) as error:
        text = _REQUEST_ID.sub("", str(error)).strip() or type(error).__name__
        reason = text.splitlines()[0][:_LONGEST_REASON].rstrip(". ")
        code = _AWS_CODE.search(text)
        remedy = _REMEDIES.get(code[1], _REMEDY) if code else _REMEDY
        raise UserError(f"{url}: cannot be read or written ({reason}); {remedy}") from None


def _open_filesystem(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it."""
    import fsspec
    from fsspec.core import url_to_fs
    from pyarrow import fs

    scheme = url.partition("://")[0].lower()
    if scheme in ("s3", "gs", "abfs", "abfss", "hdfs", "viewfs", "file"):
        with remote_errors(url):
            filesystem, path = fs.FileSystem.from_uri(url)
            return filesystem, path
    if scheme not in fsspec.available_protocols():
        raise UserError(f"{url}: the scheme {scheme} is not known; use s3://, gs:// or another one")
    try:
        other, path = url_to_fs(url)
    except ImportError as error:
        raise UserError(f"{url}: the scheme {scheme} needs another package: {error}") from None
    return fs.PyFileSystem(fs.FSSpecHandler(other)), path
