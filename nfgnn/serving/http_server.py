"""Predictions for new nodes over HTTP: JSON in, JSON out.

- ``GET /health``: status 200 when the server is ready, and 503 when its store was changed.
- ``POST /predict``: ``{"nodes": [{"id", "features", "neighbours", "weights"}, …]}``, see
  :class:`~nfgnn.serving.NewNode`; the answer is ``{"predictions": [...]}``.

Requests that cannot be answered get a status of 4xx or 5xx and ``{"error": "one sentence"}``. The
server has no authentication, so it listens on the loopback interface by default.
"""

import contextlib
import io
import json
import socket
import sys
import threading
import time
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from nfgnn import __version__
from nfgnn.errors import UserError, printable
from nfgnn.serving.store_predictor import NewNode, StorePredictor
from nfgnn.store import UnusableStoreError

MAX_BODY = 8 * 2**20
"""Bytes of a request."""
MAX_NODES = 1000
"""New nodes of a request."""
_MAX_REQUESTS = 8  # that are parsed and computed at the same time
_MAX_CONNECTIONS = 100  # each has a thread
_TIMEOUT = 30  # seconds to wait for a request, and then for all of its bytes
_DISCARDED = 2**16  # bytes of a refused request that are read at a time
_FIELDS = {"id", "features", "neighbours", "weights"}


class PredictionServer(ThreadingHTTPServer):
    """A server that answers with the predictions of a :class:`~nfgnn.serving.StorePredictor`.

    Args:
        predictor: the predictor.
        host: address to listen on.
        port: port to listen on; 0 chooses a free one.
        max_body: bytes that a request may have.
        max_nodes: new nodes that a request may have.
        max_connections: open connections; further ones get status 503.
        timeout: seconds to wait for a request of an open connection, and then for all of its bytes.
    """

    daemon_threads = True
    # A second server on the port would get a share of the requests.
    allow_reuse_port = False

    def __init__(
        self,
        predictor: StorePredictor,
        host: str = "127.0.0.1",
        port: int = 8000,
        max_body: int = MAX_BODY,
        max_nodes: int = MAX_NODES,
        max_connections: int = _MAX_CONNECTIONS,
        timeout: float = _TIMEOUT,
    ) -> None:
        self.predictor = predictor
        self.max_body = max_body
        self.max_nodes = max_nodes
        self.client_timeout = timeout
        self.slots = threading.BoundedSemaphore(_MAX_REQUESTS)
        self.connections = threading.BoundedSemaphore(max_connections)
        self.last_report = ""
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Where the server is found."""
        host = str(self.server_address[0])
        return f"http://{host}:{self.server_address[1]}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, unless there are too many of them."""
        if not self.connections.acquire(blocking=False):
            _send_busy(request)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.connections.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve the requests of a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that close the connection; report everything else in one line."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            self.report(f"{type(error).__name__}: {error}")

    def report(self, text: str) -> None:
        """Print one line for the operator, unless it repeats the last one.

        The server goes on if its log cannot be written.
        """
        if text == self.last_report or sys.stderr is None:
            return
        self.last_report = text
        with contextlib.suppress(OSError, ValueError):
            print(f"nfgnn: {printable(text)}", file=sys.stderr, flush=True)


def _send_busy(connection: socket.socket) -> None:
    """Answer with status 503. The answer fits the buffer of a new connection."""
    body = b'{"error": "the server has too many open connections; try again later"}'
    head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Length: {len(body)}\r\n"
    head += "Content-Type: application/json\r\nConnection: close\r\n\r\n"
    connection.setblocking(False)
    with contextlib.suppress(OSError):
        connection.send(head.encode() + body)


class _TimedReader(io.RawIOBase):
    """Read from a socket until a deadline, however slowly the bytes arrive."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self.connection = connection
        self.deadline = 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        return self.connection.recv_into(buffer)


class _RequestError(Exception):
    """A request that is answered with a status of 4xx."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: PredictionServer
    protocol_version = "HTTP/1.1"
    server_version = f"nfgnn/{__version__}"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.reader = _TimedReader(self.connection)
        self.rfile = io.BufferedReader(self.reader)

    def handle_one_request(self) -> None:
        self.body_was_read = False
        self._extend_deadline()
        super().handle_one_request()

    def finish(self) -> None:
        if not self.body_was_read:
            self._discard_rest()
        super().finish()

    def _discard_rest(self) -> None:
        """Read what the client is still sending, until it ends or the time is over.

        A connection that is closed with unread bytes is reset, and many clients would then report
        this instead of the answer.
        """
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            while self.reader.readinto(bytearray(_DISCARDED)):
                pass

    def parse_request(self) -> bool:
        # The first line has arrived; the rest of the request has as much time again.
        self._extend_deadline()
        return super().parse_request()

    def _extend_deadline(self) -> None:
        self.reader.deadline = time.monotonic() + self.server.client_timeout

    def do_GET(self) -> None:
        if self._has_body():
            # It is not read, so the connection cannot be used again.
            self.close_connection = True
        if self.path == "/health":
            self._answer_health()
        elif self.path == "/predict":
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "use POST for /predict")
        else:
            self._refuse_path()

    def _answer_health(self) -> None:
        try:
            self.server.predictor.check_store()
        except UnusableStoreError as error:
            self._refuse_store(error)
        else:
            nodes = self.server.predictor.store.manifest.num_nodes
            self._answer(HTTPStatus.OK, {"status": "ready", "nodes": nodes})

    def do_POST(self) -> None:
        if self.path != "/predict":
            self._refuse_path()
            return
        try:
            body = self._body()
            with self.server.slots:
                nodes = _parse_nodes(body, self.server.max_nodes)
                predictions = self.server.predictor.predict(nodes)
        except _RequestError as error:
            self._refuse(error.status, str(error))
        except UnusableStoreError as error:
            self._refuse_store(error)
        except UserError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except ConnectionError:
            self.close_connection = True
        except Exception as error:
            # The details are for the operator, not for the client.
            self.server.report(f"{type(error).__name__}: {error}")
            self._refuse(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "the prediction failed; the log of the server has the reason",
            )
        else:
            self._answer(HTTPStatus.OK, {"predictions": [asdict(found) for found in predictions]})

    def _has_body(self) -> bool:
        return "Content-Length" in self.headers or "Transfer-Encoding" in self.headers

    def _body(self) -> bytes:
        length = self._length()
        try:
            body = self.rfile.read(length)
        except TimeoutError:
            raise _RequestError(
                HTTPStatus.REQUEST_TIMEOUT, "the request did not arrive in time; send it again"
            ) from None
        if len(body) < length:
            raise _RequestError(HTTPStatus.BAD_REQUEST, "the request ends early")
        self.body_was_read = True
        return body

    def _length(self) -> int:
        """Return the number of bytes of the body."""
        found = self.headers.get_all("Content-Length", [])
        length = found[0] if len(found) == 1 else ""
        # Two statements of the length are how requests are hidden from a reverse proxy.
        unclear = len(found) != 1 or "Transfer-Encoding" in self.headers
        if unclear or not (length.isascii() and length.isdigit()):
            raise _RequestError(
                HTTPStatus.LENGTH_REQUIRED, "the request must have one Content-Length, in bytes"
            )
        # A number of many digits would be slow to convert.
        if len(length) > 18 or int(length) > self.server.max_body:
            raise _RequestError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the request has more than {self.server.max_body} bytes; send fewer nodes",
            )
        return int(length)

    def _refuse_store(self, error: UnusableStoreError) -> None:
        self.server.report(str(error))
        self._refuse(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "the store of the server was changed or damaged; restart the server with an intact "
            "store",
        )

    def _refuse_path(self) -> None:
        self._refuse(HTTPStatus.NOT_FOUND, "the server has the paths /predict and /health")

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        # The rest of a refused request is not read, so the connection cannot be used again.
        self.close_connection = True
        self._answer(status, {"error": message})

    def _answer(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        body = json.dumps(content, allow_nan=False).encode()
        self.connection.settimeout(self.server.client_timeout)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what the base class refuses as JSON, too."""
        status = HTTPStatus(code)
        # The message repeats what the client has sent.
        self._refuse(status, (message or status.phrase)[:200])

    def log_message(self, format: str, *args: Any) -> None:
        """Do not print requests: their number is not limited."""


def _parse_nodes(body: bytes, max_nodes: int) -> list[NewNode]:
    """Return the nodes of a request; refuse what is not one."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise _bad("the request is not valid JSON") from None
    if not isinstance(content, dict) or not isinstance(content.get("nodes"), list):
        raise _bad('the request must be an object {"nodes": [...]}')
    unknown = content.keys() - {"nodes"}
    if unknown:
        raise _bad(f"the request has an unknown field {min(unknown)[:80]!r}; remove it")
    if len(content["nodes"]) > max_nodes:
        raise _RequestError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"the request has more than {max_nodes} nodes; send fewer at a time",
        )
    return [_parse_node(node, i) for i, node in enumerate(content["nodes"])]


def _parse_node(node: Any, i: int) -> NewNode:
    where = f"node {i + 1} of the request"
    if not isinstance(node, dict):
        raise _bad(f"{where} is not an object")
    unknown = node.keys() - _FIELDS
    if unknown:
        allowed = ", ".join(sorted(_FIELDS))
        raise _bad(f"{where} has an unknown field {min(unknown)[:80]!r}; use {allowed}")
    features: Any = node.get("features")
    if not isinstance(features, dict) and not _are_numbers(features):
        raise _bad(f"{where}: features must be a list of numbers, or an object with column names")
    neighbours = node.get("neighbours", [])
    if not isinstance(neighbours, list) or not all(_is_id(name) for name in neighbours):
        raise _bad(f"{where}: neighbours must be a list of ids, each a text or a whole number")
    weights = node.get("weights")
    if weights is not None and not _are_numbers(weights):
        raise _bad(f"{where}: weights must be a list of numbers")
    name = node.get("id")
    if name is not None and not _is_id(name):
        raise _bad(f"{where}: id must be a text or a whole number")
    texts = [str(neighbour) for neighbour in neighbours]
    return NewNode(features, texts, weights, None if name is None else str(name))


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(_is_number(value) for value in values)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) < 2**63


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        # JSON can hold halves of characters, which no encoding can express.
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return isinstance(value, int) and _is_number(value)


def _bad(message: str) -> _RequestError:
    return _RequestError(HTTPStatus.BAD_REQUEST, message)
