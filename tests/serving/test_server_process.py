"""The command survives kills and a second server on its port."""

import contextlib
import hashlib
import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from helpers.command_line import main_status
from helpers.forked_python import start_python

BODY = json.dumps({"nodes": [{"features": [30, 2, 0, 0, 1], "neighbours": ["p3", "p8"]}]})


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


@contextlib.contextmanager
def running(folder: Path, port: int) -> Iterator[BaseProcess]:
    """Start ``nfgnn serve`` and wait until it is ready."""
    command = ("serve", str(folder / "run"), "--extends", str(folder / "store"))
    options = ("--device", "cpu", "--port", str(port))
    process = start_python("-m", "nfgnn", *command, *options)
    try:
        wait_until_ready(process, port)
        yield process
    finally:
        process.kill()
        process.join()


def wait_until_ready(process: BaseProcess, port: int) -> None:
    while process.is_alive():
        with contextlib.suppress(ConnectionRefusedError):
            if predict(port, "GET", "/health")[0] == 200:
                return
        time.sleep(0.05)
    raise AssertionError("the server has ended")


def predict(
    port: int, method: str = "POST", path: str = "/predict", body: str | None = BODY
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body if method == "POST" else None)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def content(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_killed_server_starts_again_on_its_port(served: Path) -> None:
    port = free_port()
    before = content(served)
    with running(served, port) as process:
        expected = predict(port)
        assert expected[0] == 200
        # One request is under way, and another one waits for the rest of its bytes.
        with socket.create_connection(("127.0.0.1", port)) as unfinished:
            head = f"POST /predict HTTP/1.1\r\nContent-Length: {len(BODY)}\r\n\r\n"
            unfinished.sendall(head.encode() + BODY[:10].encode())
            with socket.create_connection(("127.0.0.1", port)) as complete:
                complete.sendall((head + BODY).encode())
                os.kill(process.pid or 0, signal.SIGKILL)
                process.join()
    with running(served, port):
        assert predict(port) == expected
    assert content(served) == before


def test_two_servers_do_not_share_a_port(served: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    command = ("serve", str(served / "run"), "--extends", str(served / "store"))
    with running(served, port):
        assert main_status(*command, "--device", "cpu", "--port", str(port)) == 2
        message = capsys.readouterr().err
        assert f"cannot listen on 127.0.0.1 port {port}" in message
        assert "choose another --port" in message
        assert predict(port)[0] == 200
