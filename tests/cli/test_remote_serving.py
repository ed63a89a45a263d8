"""New nodes of a store that is given by its URL are predicted as those of a local store."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from helpers.prediction_clients import request
from helpers.s3_server import S3Server
from helpers.serving_graphs import person, write_people

from nfgnn.data import cache_folder
from nfgnn.serving import NewNode, PredictionServer, StorePredictor

URL = "s3://bucket/store"
QUICK = ("--protocol", "stratified", "--runs", "1", "--set", "epochs=5", "--device", "cpu")
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def remote(call: Call, s3: S3Server, tmp_path: Path) -> S3Server:
    """Return a bucket with ``store`` and ``new`` nodes of the local folders of these names."""
    write_people(tmp_path / "people", np.arange(60))
    write_people(tmp_path / "new", np.arange(60, 64))
    terms = ("--K", "2", "--serve", "--device", "cpu")
    assert call("precompute", "people", "--out", "store", *terms)[0] == 0
    assert call("train", "store", *QUICK, "--out", "run")[0] == 0
    for folder in ("store", "new"):
        for file in (tmp_path / folder).iterdir():
            s3.buckets["bucket"][f"{folder}/{file.name}"] = file.read_bytes()
    return s3


def flipped(content: bytes) -> bytes:
    """Return a file with one bit flipped."""
    return content[:-1] + bytes([content[-1] ^ 1])


def serve_one_request(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, dict[str, object]]]:
    """Let ``nfgnn serve`` end after one request, and return the list that gets the answer."""
    answers = []
    body = {"nodes": [{"features": person(7), "neighbours": ["p3"]}]}

    def serve(server: PredictionServer) -> None:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(request, server, "POST", "/predict", body)
            server.handle_request()
            answers.append(asked.result())
        raise KeyboardInterrupt

    monkeypatch.setattr(PredictionServer, "serve_forever", serve)
    return answers


def test_predictions_and_answers_are_those_of_the_local_store(
    call: Call, remote: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = ("predict", "run", "new", "--extends", "store", "--probabilities")
    assert call(*local, "-o", "local.csv")[0] == 0
    command = ("predict", "run", "s3://bucket/new", "--extends", URL, "--probabilities", "--json")
    status, out, _ = call(*command, "-o", "remote.csv")
    assert status == 0
    assert json.loads(out)["extends"] == URL
    assert (tmp_path / "remote.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()
    remote.requests.clear()
    answers = serve_one_request(monkeypatch)
    status, out, _ = call("serve", "run", "--extends", URL, "--port", "0", "--json")
    assert status == 0
    assert json.loads(out)["store"] == URL
    # The copy of the first command is used again.
    objects = {line.split()[1] for line in remote.requests if line.startswith("GET")}
    assert objects == {"/bucket/store/manifest.json"}
    predictor = StorePredictor.open("run", "store", device="cpu")
    expected = predictor.predict([NewNode(person(7), ["p3"])])[0]
    assert answers[0][0] == 200
    found = answers[0][1]["predictions"]
    assert isinstance(found, list)
    assert found[0]["probabilities"] == expected.probabilities


def test_a_copy_that_is_damaged_on_this_disk_is_repaired(
    call: Call, remote: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a file of the graph that is too large to be read at every opening."""
    monkeypatch.setattr("nfgnn.store.store._FULL_BYTES", 0)
    answers = serve_one_request(monkeypatch)
    serve = ("serve", "run", "--extends", URL, "--port", "0")
    assert call(*serve)[0] == 0
    for name in ("indices.npy", "id_text.npy", "terms.npy"):
        (copy,) = cache_folder().glob(f"stores/*/{name}")
        content = copy.read_bytes()
        copy.write_bytes(flipped(content))
        assert call(*serve)[0] == 0
        assert copy.read_bytes() == content
        assert answers[-1] == answers[0]


def test_a_server_keeps_the_store_that_it_has_opened(remote: S3Server) -> None:
    predictor = StorePredictor.open("run", URL, device="cpu")
    expected = predictor.predict([NewNode(person(7), ["p3"])])
    remote.buckets["bucket"].clear()
    assert predictor.predict([NewNode(person(7), ["p3"])]) == expected


def test_stores_that_cannot_be_read_are_refused(
    call: Call, remote: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "store/scale.npy"
    objects = remote.buckets["bucket"]
    content = objects[key]

    def refused(words: str) -> None:
        for command in (("predict", "run", "new"), ("serve", "run")):
            status, out, err = call(*command, "--extends", URL)
            assert (status, out) == (2, "")
            last = err.strip().splitlines()[-1]
            assert last.startswith("nfgnn: ")
            assert words in last
            assert "Traceback" not in err
        assert not list(tmp_path.glob("*.csv"))

    objects[key] = flipped(content)
    refused("s3://bucket/store/scale.npy: block 0 of 1 is damaged; upload the store again")
    del objects[key]
    refused("s3://bucket/store/scale.npy: does not exist; check the bucket and the key")
    objects[key] = content
    manifest = objects.pop("store/manifest.json")
    refused("s3://bucket/store")
    objects["store/manifest.json"] = manifest
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    refused("set credentials with access to the bucket")
