"""Hostile requests to the server, and what must hold of its answers."""

import json
import math
import random
import socket
import threading
import time
from typing import Any

from nfgnn.serving import PredictionServer, StorePredictor

from .byte_mutations import BYTE_MUTATIONS
from .hostile_values import hostile_number, hostile_text, hostile_value

_TIMEOUT = 1.0  # seconds that the server waits for a request
_PATIENCE = 60.0  # seconds that a client waits for an answer
_NODE = {"id": "x", "features": [0.5] * 5, "neighbours": ["é1", "é7"], "weights": [1, 2]}
_PATHS = (
    *("/", "//predict", "/predict/", "/predict?x=1", "/predict#a", "/Predict", "/%70redict"),
    *("/../predict", "/predict/../../etc/passwd", "/health/..", "http://a/predict", "*", "/health"),
    *("/" + "a" * 70_000, "/\x00", "/é", "/predict\t", "/..%2f..%2fetc%2fpasswd", "\\predict"),
)
_METHODS = ("GET", "PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE", "post", "P\x00ST", "")
_VERSIONS = ("HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/1.1.1", "HTTP/-1.1", "HTTP/9999999999.1", "")


def request_problems(predictor: StorePredictor, rng: random.Random) -> list[str]:
    """Send a hostile request, then a proper one, and return what is wrong with the answers."""
    body = json.dumps({"nodes": [_NODE]}).encode()
    with PredictionServer(predictor, port=0, timeout=_TIMEOUT) as server:
        expected = _exchange(server, [_request(body)])
        found = _exchange(server, _hostile_pieces(rng, body), close=rng.random() < 0.5)
        problems = _answer_problems(found)
        again = _exchange(server, [_request(body)])
        if _body(again) != _body(expected) or b"predictions" not in again:
            problems.append("a proper request is not answered as before")
    return problems


def _request(body: bytes, head: bytes = b"POST /predict HTTP/1.1", *headers: bytes) -> bytes:
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([head, *(headers or (length,)), b"", body])


def _hostile_pieces(rng: random.Random, body: bytes) -> list[bytes]:
    """Return a request in the pieces in which it is sent."""
    kind = rng.randrange(9)
    if kind == 0:
        request = _mutated(rng, _request(body))
    elif kind == 1:
        request = _request(_mutated(rng, body))
    elif kind in (2, 3, 4):
        request = _request(json.dumps(_hostile_content(rng)).encode())
    elif kind == 5:
        request = _request(body, _hostile_line(rng))
    elif kind == 6:
        request = _request(body, b"POST /predict HTTP/1.1", *_hostile_headers(rng, len(body)))
    elif kind == 7:
        request = _request(_large_body(rng))
    else:
        request = _request(body) + _mutated(rng, _request(body))
    if rng.random() < 0.2:  # a client that ends early, or never
        request = request[: rng.randrange(len(request) + 1)]
    if rng.random() < 0.2:  # a slow client
        step = max(1, len(request) // 20)
        return [request[i : i + step] for i in range(0, len(request), step)]
    return [request]


def _mutated(rng: random.Random, content: bytes) -> bytes:
    name = rng.choice(sorted(BYTE_MUTATIONS))
    return bytes(BYTE_MUTATIONS[name](rng, bytearray(content)))


def _hostile_content(rng: random.Random) -> Any:
    node: dict[str, Any] = {**_NODE}
    key = rng.choice([*node, "unknown"])
    place = rng.randrange(5)
    if place == 0:
        return hostile_value(rng)
    if place == 1:
        return {"nodes": hostile_value(rng), hostile_text(rng): hostile_value(rng)}
    if place == 2 and isinstance(node.get(key), list):
        values = list(node[key])
        values[rng.randrange(len(values))] = hostile_value(rng)
        node[key] = values
    elif place == 3:
        node["features"] = {f"x{i}": hostile_value(rng) for i in range(rng.randrange(7))}
    else:
        node[key] = hostile_value(rng)
    return {"nodes": [node] * rng.choice([1, 1, 1, 2, 30])}


def _hostile_line(rng: random.Random) -> bytes:
    path = rng.choice([*_PATHS, hostile_text(rng)])
    method = rng.choice(["POST", "POST", *_METHODS])
    version = rng.choice(["HTTP/1.1", "HTTP/1.1", *_VERSIONS])
    return f"{method} {path} {version}".encode(errors="replace")


def _hostile_headers(rng: random.Random, length: int) -> list[bytes]:
    right = f"Content-Length: {length}"
    other = f"Content-Length: {rng.choice([hostile_number(rng), hostile_text(rng), length + 9])}"
    chosen = rng.choice(
        [
            [other],
            [right, other],
            [other, right],
            [right, "Transfer-Encoding: chunked"],
            ["Transfer-Encoding: chunked"],
            [right, "Expect: 100-continue"],
            [right, f"Connection: {hostile_text(rng)}"],
            [right, *(f"X-{i}: {i}" for i in range(rng.choice([50, 150])))],
            [right, "X: " + "a" * rng.choice([1000, 70_000])],
            [right, " folded", hostile_text(rng)],
            [f"Content-Length : {length}"],
            [],
        ]
    )
    return [header.encode(errors="replace") for header in chosen] or [b"X: 1"]


def _large_body(rng: random.Random) -> bytes:
    choices = (
        lambda: b" " * (8 * 2**20 + 1),
        lambda: b"[" * 2**20,
        lambda: b'{"nodes": [' + b"{}," * 2**20 + b"{}]}",
        lambda: json.dumps({"nodes": [_NODE] * 1001}).encode(),
        lambda: json.dumps({"nodes": [{"features": [0] * 10**6}]}).encode(),
        lambda: json.dumps({"nodes": [{**_NODE, "neighbours": ["é1"] * 10**5}]}).encode(),
        lambda: b'{"nodes": [{"features": [' + b"9" * 10**6 + b"]}]}",
        lambda: b'{"nodes": [{"features": [0.' + b"9" * 10**6 + b"]}]}",
    )
    return rng.choice(choices)()


def _exchange(server: PredictionServer, pieces: list[bytes], close: bool = True) -> bytes:
    """Send the pieces over a connection and return all answers."""
    client, accepted = socket.socketpair()
    with client:
        server.process_request(accepted, ("client", 0))
        sender = threading.Thread(target=_send, args=(client, pieces, close))
        sender.start()
        client.settimeout(_PATIENCE)
        parts = []
        try:
            while part := client.recv(2**16):
                parts.append(part)
        except ConnectionError:
            pass
        sender.join()
    return b"".join(parts)


def _send(client: socket.socket, pieces: list[bytes], close: bool) -> None:
    try:
        for piece in pieces:
            client.sendall(piece)
            if len(pieces) > 1:
                time.sleep(0.01)
        if close:
            client.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the server has closed the connection


def _body(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


def _answer_problems(answers: bytes) -> list[str]:
    """Check that answers are JSON with predictions or one sentence; there may be none."""
    while answers.startswith(b"HTTP/1.1 100 "):
        answers = _body(answers)
    if not answers:
        return []
    if not answers.startswith(b"HTTP/1.1 "):
        return _content_problems(answers)  # HTTP/0.9 has no status
    head, _, rest = answers.partition(b"\r\n\r\n")
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
    length = int(fields[b"Content-Length"])
    status = int(head[9:12])
    if status >= 500 and status not in (501, 505):
        return [f"the status is {status}"]
    if not rest:
        return []  # the answer to a HEAD request
    return _content_problems(rest[:length]) + _answer_problems(rest[length:])


def _content_problems(body: bytes) -> list[str]:
    content = json.loads(body)
    if "error" in content:
        message = content["error"]
        single = isinstance(message, str) and message and message.isprintable()
        return [] if single and len(message) < 1000 else [f"the message is {message!r:.200}"]
    for prediction in content.get("predictions", []):
        total = sum(prediction["probabilities"].values())
        if not math.isclose(total, 1, abs_tol=1e-4):
            return [f"the probabilities sum to {total}"]
    return []
