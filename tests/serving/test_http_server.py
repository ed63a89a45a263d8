"""The server answers with predictions, and hostile requests with one sentence."""

import http.client
import json
import socket
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from helpers.command_line import main_status
from helpers.prediction_clients import interrupt_after_one_request, request, serving
from helpers.serving_graphs import person

from nfgnn.serving import NewNode, PredictionServer, StorePredictor


@pytest.fixture(scope="module")
def server(predictor: StorePredictor) -> Iterator[PredictionServer]:
    with serving(predictor, max_body=20_000, max_nodes=5) as found:
        yield found


def test_predictions_are_those_of_the_predictor(
    server: PredictionServer, predictor: StorePredictor
) -> None:
    nodes = [
        {"id": "x", "features": person(7), "neighbours": ["p3", "y"], "weights": [1, 0.5]},
        {"id": "y", "features": person(8), "neighbours": ["p5"]},
    ]
    status, found = request(server, "POST", "/predict", {"nodes": nodes})
    assert status == 200
    expected = predictor.predict(
        [NewNode(person(7), ["p3", "y"], [1, 0.5], "x"), NewNode(person(8), ["p5"], None, "y")]
    )
    assert found == {"predictions": [asdict(prediction) for prediction in expected]}
    status, found = request(server, "POST", "/predict", {"nodes": []})
    assert (status, found) == (200, {"predictions": []})


def test_a_connection_serves_several_requests(server: PredictionServer) -> None:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=20)
    for _ in range(3):
        connection.request("POST", "/predict", json.dumps({"nodes": [{"features": [0] * 5}]}))
        answer = connection.getresponse()
        assert answer.status == 200
        assert len(json.loads(answer.read())["predictions"]) == 1
    connection.close()
    assert request(server, "GET", "/health") == (200, {"status": "ready", "nodes": 120})


FIVE = [0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("{", 400, "not valid JSON"),
        (b"\xff\xfe", 400, "not valid JSON"),
        ("[" * 9000, 400, "not valid JSON"),
        ("[]", 400, "must be an object"),
        ({"nodes": 3}, 400, "must be an object"),
        ({"nodes": [], "x": 1}, 400, "unknown field 'x'"),
        ({"nodes": [3]}, 400, "node 1 of the request is not an object"),
        ({"nodes": [{"feature": FIVE}]}, 400, "unknown field 'feature'"),
        ({"nodes": [{}]}, 400, "features must be a list of numbers"),
        ({"nodes": [{"features": ["1", 2, 3, 4, 5]}]}, 400, "features must be a list of numbers"),
        ({"nodes": [{"features": [True, 2, 3, 4, 5]}]}, 400, "features must be a list of numbers"),
        ({"nodes": [{"features": [1, 2]}]}, 400, "has 2 features, but the graph has 5"),
        ('{"nodes": [{"features": [NaN, 0, 0, 0, 0]}]}', 400, "not a finite number"),
        ('{"nodes": [{"features": [1e999, 0, 0, 0, 0]}]}', 400, "not a finite number"),
        ({"nodes": [{"features": [10**40, 0, 0, 0, 0]}]}, 400, "features must be a list"),
        ('{"nodes": [{"features": [' + "9" * 5000 + "]}]}", 400, "not valid JSON"),
        ({"nodes": [{"features": FIVE, "neighbours": "p3"}]}, 400, "must be a list of ids"),
        ({"nodes": [{"features": FIVE, "neighbours": [None]}]}, 400, "must be a list of ids"),
        ({"nodes": [{"features": FIVE, "neighbours": ["\ud800"]}]}, 400, "must be a list of ids"),
        ({"nodes": [{"features": FIVE, "neighbours": ["zz"]}]}, 400, "'zz' is neither"),
        ({"nodes": [{"features": FIVE, "id": [1]}]}, 400, "id must be a text"),
        ({"nodes": [{"features": FIVE, "id": "p3"}]}, 400, "already a node of the graph"),
        ({"nodes": [{"features": FIVE, "weights": "1"}]}, 400, "weights must be a list"),
        ({"nodes": [{"features": FIVE}] * 6}, 413, "more than 5 nodes"),
        ("x" * 20_001, 413, "more than 20000 bytes"),
    ],
)
def test_hostile_requests_get_one_sentence(
    body: object, status: int, message: str, server: PredictionServer
) -> None:
    found, answer = request(server, "POST", "/predict", body)
    assert found == status
    assert list(answer) == ["error"]
    assert message in str(answer["error"])
    assert "\n" not in str(answer["error"])


def test_other_paths_and_methods_are_refused(server: PredictionServer) -> None:
    assert request(server, "GET", "/")[0] == 404
    assert request(server, "POST", "/../etc/passwd", "{}")[0] == 404
    assert request(server, "GET", "/predict")[0] == 405
    assert request(server, "DELETE", "/predict")[0] == 501
    assert request(server, "POST", "/predict", "{}", **{"Content-Length": "x"})[0] == 411
    huge = {"Content-Length": "9" * 400}
    assert request(server, "POST", "/predict", "{}", **huge)[0] == 413


def test_clients_that_disappear_do_no_harm(
    server: PredictionServer, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(server.server_address[:2]) as client:
        client.sendall(b"POST /predict HTTP/1.1\r\nContent-Length: 500\r\n\r\n{")
    with socket.create_connection(server.server_address[:2]) as client:
        client.sendall(b"\x00\x01\x02\r\n\r\n")
        client.recv(1000)
    assert request(server, "GET", "/health")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


def test_the_command_serves_until_it_is_interrupted(
    served: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses = interrupt_after_one_request(monkeypatch)
    monkeypatch.chdir(served)
    command = ("serve", "run", "--extends", "store", "--device", "cpu", "--json")
    assert main_status(*command, "--port", "0") == 0
    output = capsys.readouterr()
    port = json.loads(output.out)["url"].rpartition(":")[2]
    assert statuses == [200]
    assert output.err.endswith("stopped\n")
    with socket.create_server(("127.0.0.1", int(port))):
        assert main_status(*command, "--port", port) == 2
    assert "choose another --port" in capsys.readouterr().err
