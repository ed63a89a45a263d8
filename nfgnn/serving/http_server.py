"""Predictions for new nodes over HTTP: JSON in, JSON out.

- ``GET /health``: status 200 when the server is ready.
- ``POST /predict``: ``{"nodes": [{"id", "features", "neighbours", "weights"}, …]}``, see
  :class:`~nfgnn.serving.NewNode`; the answer is ``{"predictions": [...]}``.

Requests that cannot be answered get a status of 4xx and ``{"error": "one sentence"}``. The server
has no authentication, so it listens on the loopback interface by default.
"""

import json
import sys
import threading
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from nfgnn import __version__
from nfgnn.errors import UserError
from nfgnn.serving.store_predictor import NewNode, StorePredictor

MAX_BODY = 8 * 2**20
"""Bytes of a request."""
MAX_NODES = 1000
"""New nodes of a request."""
_MAX_REQUESTS = 8  # that are computed at the same time
_TIMEOUT = 30  # seconds that a client may stay silent
_FIELDS = {"id", "features", "neighbours", "weights"}


class PredictionServer(ThreadingHTTPServer):
    """A server that answers with the predictions of a :class:`~nfgnn.serving.StorePredictor`.

    Args:
        predictor: the predictor.
        host: address to listen on.
        port: port to listen on; 0 chooses a free one.
        max_body: bytes that a request may have.
        max_nodes: new nodes that a request may have.
    """

    daemon_threads = True

    def __init__(
        self,
        predictor: StorePredictor,
        host: str = "127.0.0.1",
        port: int = 8000,
        max_body: int = MAX_BODY,
        max_nodes: int = MAX_NODES,
    ) -> None:
        self.predictor = predictor
        self.max_body = max_body
        self.max_nodes = max_nodes
        self.slots = threading.BoundedSemaphore(_MAX_REQUESTS)
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Where the server is found."""
        host = str(self.server_address[0])
        return f"http://{host}:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that close the connection; report everything else in one line."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"nfgnn: {type(error).__name__}: {error}", file=sys.stderr)


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
    timeout = _TIMEOUT

    def do_GET(self) -> None:
        if self.path == "/health":
            store = self.server.predictor.store.manifest
            self._answer(HTTPStatus.OK, {"status": "ready", "nodes": store.num_nodes})
        elif self.path == "/predict":
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "use POST for /predict")
        else:
            self._refuse_path()

    def do_POST(self) -> None:
        if self.path != "/predict":
            self._refuse_path()
            return
        try:
            nodes = _parse_nodes(self._body(), self.server.max_nodes)
            with self.server.slots:
                predictions = self.server.predictor.predict(nodes)
        except _RequestError as error:
            self._refuse(error.status, str(error))
        except UserError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:
            # The details are for the operator, not for the client.
            print(f"nfgnn: {type(error).__name__}: {error}", file=sys.stderr)
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "the prediction failed")
        else:
            self._answer(HTTPStatus.OK, {"predictions": [asdict(found) for found in predictions]})

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise _RequestError(HTTPStatus.LENGTH_REQUIRED, "the request has no Content-Length")
        # A number of many digits would be slow to convert.
        if len(length) > 18 or int(length) > self.server.max_body:
            raise _RequestError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the request has more than {self.server.max_body} bytes; send fewer nodes",
            )
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise _RequestError(HTTPStatus.BAD_REQUEST, "the request ends early")
        return body

    def _refuse_path(self) -> None:
        self._refuse(HTTPStatus.NOT_FOUND, "the server has the paths /predict and /health")

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        # The rest of a refused request is not read, so the connection cannot be used again.
        self.close_connection = True
        self._answer(status, {"error": message})

    def _answer(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        body = json.dumps(content, allow_nan=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what the base class refuses as JSON, too."""
        status = HTTPStatus(code)
        self._refuse(status, message or status.phrase)

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
