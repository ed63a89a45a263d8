"""Commands give the same results for a URL as for a local path."""

import json
from pathlib import Path

import pytest
from helpers.s3_server import S3Server
from safetensors.torch import load_file

from nfgnn.data import write_template

QUICK = ("--protocol", "stratified", "--runs", "1", "--set", "epochs=5", "--device", "cpu")
TERMS = ("--K", "2", "--device", "cpu", "--serve")


@pytest.fixture
def tables(s3: S3Server, tmp_path: Path) -> Path:
    """Return a folder of tables, which the bucket also holds as ``mine``."""
    folder = tmp_path / "mine"
    write_template(folder)
    for file in folder.iterdir():
        s3.buckets["bucket"][f"mine/{file.name}"] = file.read_bytes()
    return folder


def test_store_training_prediction_and_verification(call, tables: Path, tmp_path: Path) -> None:
    url = "s3://bucket/store"
    assert call("precompute", "mine", "--out", "store", *TERMS)[0] == 0
    status, out, _ = call("precompute", "s3://bucket/mine", "--out", url, *TERMS, "--json")
    assert status == 0
    assert json.loads(out)["store"] == url
    for place, run in (("store", "run"), (url, "remote-run")):
        assert call("train", place, *QUICK, "--out", run)[0] == 0
    found = load_file(tmp_path / "remote-run" / "seed-0" / "weights.safetensors")
    expected = load_file(tmp_path / "run" / "seed-0" / "weights.safetensors")
    assert found.keys() == expected.keys()
    for key, tensor in expected.items():
        assert tensor.equal(found[key])
    summaries = []
    for run in ("run", "remote-run"):
        summaries.append(json.loads((tmp_path / run / "summary.json").read_text()))
    assert summaries[1]["source"]["dataset"] == url
    assert summaries[0]["test_accuracy"] == summaries[1]["test_accuracy"]
    assert call("predict", "run", "-o", "local.csv")[0] == 0
    assert call("predict", "remote-run", "-o", "remote.csv")[0] == 0
    assert (tmp_path / "local.csv").read_bytes() == (tmp_path / "remote.csv").read_bytes()
    status, out, _ = call("verify", url)
    assert (status, out) == (0, f"{url}: 10 files, all intact\n")


def test_a_damaged_store_exits_with_status_2(call, s3: S3Server, tables: Path) -> None:
    url = "s3://bucket/store"
    assert call("precompute", "mine", "--out", url, *TERMS)[0] == 0
    objects = s3.buckets["bucket"]
    objects["store/terms.npy"] = objects["store/terms.npy"][:-1] + b"\x7f"
    status, out, _ = call("verify", url)
    assert status == 2
    assert f"{url}/terms.npy: block 0 of 1 is damaged" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "s3://bucket/nothing"), "contains no graph"),
        (("train", "s3://nowhere/graph"), "check the name of the bucket"),
        (("analyze", "s3://KEY:SECRET@bucket/graph"), "the URL contains a password"),
        (("verify", "s3://bucket/nothing"), "is not a store"),
        (("train", "karate", "--out", "s3://bucket/run"), "choose a local --out"),
        (("precompute", "karate", "--out", "s3://nowhere/store"), "or create the bucket"),
    ],
)
def test_errors_are_one_line(arguments: tuple[str, ...], words: str, call, s3: S3Server) -> None:
    status, out, err = call(*arguments)
    assert status == 2
    assert out == ""
    last = err.strip().splitlines()[-1]
    assert last.startswith("nfgnn: ")
    assert words in last
    assert "Traceback" not in err
    assert "SECRET@" not in err
