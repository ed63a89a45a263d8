"""A running prediction server, and requests to it."""

import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from nfgnn.serving import PredictionServer, StorePredictor


@contextmanager
def serving(predictor: StorePredictor, **limits: float) -> Iterator[PredictionServer]:
    """Run a server in a thread."""
    with PredictionServer(predictor, port=0, **limits) as found:  # type: ignore[arg-type]
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()


def request(
    server: PredictionServer, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, dict[str, object]]:
    """Return the status and the JSON of an answer."""
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=60)
    text = body if isinstance(body, str | bytes | None) else json.dumps(body)
    try:
        connection.request(method, path, text, headers)
        answer = connection.getresponse()
        assert answer.getheader("Content-Type") == "application/json"
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def interrupt_after_one_request(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let servers answer one request and then be interrupted; return the list of the statuses."""
    statuses = []

    def serve(server: PredictionServer) -> None:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(request, server, "GET", "/health")
            server.handle_request()
            statuses.append(asked.result()[0])
        raise KeyboardInterrupt

    monkeypatch.setattr(PredictionServer, "serve_forever", serve)
    return statuses
