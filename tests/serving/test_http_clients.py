"""Slow, rude and numerous clients do not occupy the server."""

import contextlib
import json
import socket
import struct

import pytest
from helpers.prediction_clients import request, serving

from nfgnn.serving import PredictionServer, StorePredictor


def connect(server: PredictionServer) -> socket.socket:
    return socket.create_connection(server.server_address[:2], timeout=60)


def answers(connection: socket.socket) -> bytes:
    """Return everything that the server sends until it closes the connection."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def error_of(answer: bytes) -> str:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Type: application/json" in head
    message: str = json.loads(body)["error"]
    return message


def test_an_unfinished_request_is_given_up(predictor: StorePredictor) -> None:
    with serving(predictor, timeout=0.2) as server, connect(server) as client:
        client.sendall(b"POST /predict HTTP/1.1\r\nContent-Length: 500\r\n\r\n{")
        found = answers(client)
    assert found.startswith(b"HTTP/1.1 408 ")
    assert "did not arrive in time" in error_of(found)


def test_bytes_that_trickle_do_not_extend_the_time(predictor: StorePredictor) -> None:
    """A client that sends a byte now and then is never silent."""
    with serving(predictor, timeout=0.3) as server, connect(server) as client:
        client.settimeout(0.02)
        client.sendall(b"POST /predict HTTP/1.1\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(3000):
            client.sendall(b" ")
            try:
                found = client.recv(65536)
            except TimeoutError:
                continue
            break
    assert found.startswith(b"HTTP/1.1 408 ")


def test_silent_connections_are_closed(predictor: StorePredictor) -> None:
    with serving(predictor, timeout=0.1) as server:
        with connect(server) as client:
            assert answers(client) == b""
        with connect(server) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost:")
            assert answers(client) == b""


def test_too_many_connections_get_a_status(predictor: StorePredictor) -> None:
    with serving(predictor, max_connections=2) as server:
        health = b"GET /health HTTP/1.1\r\n\r\n"
        with connect(server) as one, connect(server) as two:
            for client in (one, two):
                client.sendall(health)
                assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
            with connect(server) as three:
                found = answers(three)
            assert found.startswith(b"HTTP/1.1 503 ")
            assert "try again later" in error_of(found)
        # The server notices that both were closed.
        found = b""
        while not found.startswith(b"HTTP/1.1 200 "):
            with connect(server) as client:
                client.sendall(health)
                found = client.recv(65536)


@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 13\r\nContent-Length: 500",
        "Content-Length: 13\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked",
        "Content-Length: +13",
        "Content-Length: -1",
    ],
)
def test_the_length_of_a_request_is_clear(predictor: StorePredictor, headers: str) -> None:
    """Otherwise a reverse proxy and this server may disagree on where a request ends."""
    with serving(predictor) as server, connect(server) as client:
        client.sendall(f'POST /predict HTTP/1.1\r\n{headers}\r\n\r\n{{"nodes": []}}'.encode())
        found = answers(client)
    assert found.startswith(b"HTTP/1.1 411 ")
    assert "one Content-Length" in error_of(found)


def test_the_body_of_a_get_is_no_request(predictor: StorePredictor) -> None:
    hidden = b"GET /hidden HTTP/1.1\r\n\r\n"
    request = f"GET /health HTTP/1.1\r\nContent-Length: {len(hidden)}\r\n\r\n".encode() + hidden
    with serving(predictor) as server, connect(server) as client:
        client.sendall(request)
        found = answers(client)
    assert found.startswith(b"HTTP/1.1 200 ")
    assert found.count(b"HTTP/1.1 ") == 1


def test_the_answer_to_a_head_request_has_no_body(predictor: StorePredictor) -> None:
    with serving(predictor) as server, connect(server) as client:
        client.sendall(b"HEAD /health HTTP/1.1\r\n\r\n")
        found = answers(client)
    assert found.startswith(b"HTTP/1.1 501 ")
    assert found.endswith(b"\r\n\r\n")


def test_a_huge_request_gets_its_status(predictor: StorePredictor) -> None:
    """The client sends all of it before it reads the answer."""
    with serving(predictor) as server:
        status, answer = request(server, "POST", "/predict", b" " * 2**26)
        assert status == 413
        assert "has more than 8388608 bytes; send fewer nodes" in str(answer["error"])
        assert request(server, "GET", "/health")[0] == 200


def test_a_huge_request_that_never_ends_is_given_up(predictor: StorePredictor) -> None:
    with serving(predictor, timeout=0.3, max_connections=1) as server:
        with connect(server) as client:
            client.sendall(b"POST /predict HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")
            assert answers(client).startswith(b"HTTP/1.1 413 ")
            with contextlib.suppress(ConnectionError):
                while True:
                    client.sendall(b" " * 2**16)
        found = b""
        while not found.startswith(b"HTTP/1.1 200 "):
            with connect(server) as client:
                client.sendall(b"GET /health HTTP/1.1\r\n\r\n")
                found = client.recv(65536)


def test_clients_that_do_not_wait_for_their_answer(
    predictor: StorePredictor, capfd: pytest.CaptureFixture[str]
) -> None:
    body = json.dumps({"nodes": [{"features": [0] * 5, "neighbours": ["p3"]}] * 50}).encode()
    head = f"POST /predict HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    reset = struct.pack("ii", 1, 0)  # close without waiting for what was sent
    with serving(predictor) as server:
        for _ in range(5):
            client = connect(server)
            client.sendall(head + body)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            client.close()
        assert request(server, "POST", "/predict", body)[0] == 200
    assert capfd.readouterr().err == ""
