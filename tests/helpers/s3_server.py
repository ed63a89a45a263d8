"""A small server that speaks the part of the S3 protocol that pyarrow uses, on loopback.

Buckets are kept in memory. Keys are not interpreted, so that a test can store any of them.
"""

import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_DATE = "2026-01-01T00:00:00.000Z"


class S3Server(ThreadingHTTPServer):
    """The server and its content.

    Args:
        access_key: requests that are signed with another key are refused.
    """

    daemon_threads = True

    def __init__(self, access_key: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.access_key = access_key
        self.buckets: dict[str, dict[str, bytes]] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: list[str] = []
        """Method, path and range of every request so far."""
        self.on_request: Callable[[str], None] = lambda request: None
        """Called before a request is answered."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore that a client was killed before it received the answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def count(self, start: str) -> int:
        """Return the number of requests that start with a text, such as ``GET /bucket/key``."""
        return sum(request.startswith(start) for request in self.requests)


@contextmanager
def s3_server(access_key: str = "test") -> Iterator[S3Server]:
    """Run a server in a thread."""
    server = S3Server(access_key)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: S3Server

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        self.query = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        bucket, _, self.key = unquote(parts.path).lstrip("/").partition("/")
        request = f"{self.command} /{bucket}/{self.key} {self.headers.get('Range', '')}".rstrip()
        self.server.requests.append(request)
        body = self._body()
        self.server.on_request(request)
        if f"Credential={self.server.access_key}/" not in self.headers.get("Authorization", ""):
            self._fail(403, "AccessDenied")
        elif bucket not in self.server.buckets:
            self._fail(404, "NoSuchBucket")
        else:
            self.objects = self.server.buckets[bucket]
            if self.key:
                self._handle_object(body)
            else:
                self._list(bucket)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle

    def _handle_object(self, body: bytes) -> None:
        upload = self.query.get("uploadId")
        if self.command == "POST" and "uploads" in self.query:
            name = f"upload-{len(self.server.uploads)}"
            self.server.uploads[name] = {}
            self._xml("InitiateMultipartUploadResult", f"<UploadId>{name}</UploadId>")
        elif self.command == "PUT" and upload:
            self.server.uploads[upload][int(self.query["partNumber"])] = body
            self._send(200, etag=_etag(body))
        elif self.command == "POST" and upload:
            parts = self.server.uploads.pop(upload)
            self.objects[self.key] = b"".join(parts[number] for number in sorted(parts))
            etag = escape(_etag(self.objects[self.key]))
            self._xml("CompleteMultipartUploadResult", f"<ETag>{etag}</ETag>")
        elif self.command == "PUT":
            self.objects[self.key] = body
            self._send(200, etag=_etag(body))
        elif self.command == "DELETE":
            self.objects.pop(self.key, None)
            self._send(204)
        elif self.key not in self.objects:
            self._fail(404, "NoSuchKey")
        else:
            self._send_object(self.objects[self.key])

    def _send_object(self, content: bytes) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        etag = _etag(content)
        if wanted is None:
            self._send(200, content, etag)
            return
        first, last = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
        place = f"bytes {first}-{last}/{len(content)}"
        self._send(206, content[first : last + 1], etag, place)

    def _list(self, bucket: str) -> None:
        prefix = self.query.get("prefix", "")
        delimiter = self.query.get("delimiter")
        entries = []
        folders = {}
        for key in sorted(self.objects):
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders[prefix + rest.partition(delimiter)[0] + delimiter] = None
                continue
            entries.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[key])}</Size>"
                f"<LastModified>{_DATE}</LastModified></Contents>"
            )
        for folder in folders:
            entries.append(f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>")
        count = len(entries)
        head = f"<Name>{bucket}</Name><KeyCount>{count}</KeyCount><IsTruncated>false</IsTruncated>"
        self._xml("ListBucketResult", head + "".join(entries))

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            content = self._chunks()
        else:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            content = _decode_chunks(content)
        return content

    def _chunks(self) -> bytes:
        content = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return content

    def _xml(self, tag: str, content: str) -> None:
        text = f'<?xml version="1.0" encoding="UTF-8"?><{tag}>{content}</{tag}>'
        self._send(200, text.encode())

    def _fail(self, status: int, code: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
        self._send(status, text.encode())

    def _send(self, status: int, content: bytes = b"", etag: str = "", place: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if etag:
            self.send_header("ETag", etag)
        if place:
            self.send_header("Content-Range", place)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _decode_chunks(content: bytes) -> bytes:
    """Decode the chunks of a signed body, whose lengths are lines of their own."""
    decoded = b""
    while content:
        line, _, content = content.partition(b"\r\n")
        size = int(line.split(b";")[0], 16)
        if size == 0:
            break
        decoded += content[:size]
        content = content[size + 2 :]
    return decoded


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'
