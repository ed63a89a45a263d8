"""Commands on the folder of a search, which is a run folder with an ensemble."""

import csv
import json
from pathlib import Path

import pytest
from helpers.searches import write_search

from nfgnn.auto import load_predictor, read_result
from nfgnn.data import load_dataset, split
from nfgnn.training import Graph


def columns(path: Path) -> dict[str, list[str]]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_predict_explore_verify_and_train_read_the_folder(call, tmp_path: Path) -> None:
    data = load_dataset("karate")
    result, _ = write_search(tmp_path / "out", Graph.of(data), {"dataset": "karate", "columns": []})
    status, out, _ = call("predict", "out", "--probabilities", "-o", "e.csv", "--json")
    assert status == 0
    assert json.loads(out)["model"] == "ensemble"
    status, out, _ = call("predict", "out", "--single", "-o", "s.csv", "--json")
    assert json.loads(out)["model"] == result.best.config.model
    for name, single in (("e.csv", False), ("s.csv", True)):
        expected = load_predictor(tmp_path / "out", device="cpu", single=single)
        shares = expected.predict_proba(data).amax(1).tolist()
        written = columns(tmp_path / name)
        assert [float(p) for p in written["probability"]] == pytest.approx(shares, abs=1e-6)
        test_nodes = split(data, "stratified", 0).test_mask
        assert [part == "test" for part in written["part"]] == test_nodes.tolist()
    status, out, _ = call("verify", "out")
    assert status == 0
    assert "all intact" in out
    status, _, err = call("explore", "out", "-o", "page.html")
    assert status == 0, err
    preset = ("--preset", "out/best.toml", "--protocol", "stratified", "--runs", "1")
    status, out, err = call("train", "karate", *preset, "--out", "again", "--json")
    assert status == 0, err
    test_score = json.loads(out)["test_accuracy"]["values"][0]
    assert test_score == pytest.approx(read_result(tmp_path / "out").test.value)


def test_an_ensemble_has_one_seed(call, tmp_path: Path) -> None:
    source = {"dataset": "karate", "columns": []}
    write_search(tmp_path / "out", Graph.of(load_dataset("karate")), source)
    status, _, err = call("predict", "out", "--seed", "3", "-o", "p.csv")
    assert status == 2
    assert "has no seed 3: it has 0" in err
    (tmp_path / "out" / "ensemble" / "ensemble.json").write_text("{}")
    status, _, err = call("predict", "out", "-o", "p.csv")
    assert status == 2
    assert "out/ensemble/ensemble.json: is damaged" in err
    status, out, _ = call("verify", "out")
    assert status == 2
    assert "out/ensemble/ensemble.json: is damaged" in out
