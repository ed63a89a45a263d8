"""The folder of a search: complete, verified, and never replaced by accident."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from helpers.searches import DESCRIPTION, write_search

from nfgnn.auto import load_portfolio
from nfgnn.auto.ensemble_classifier import EnsembleClassifier
from nfgnn.auto.run_files import (
    AutoFolder,
    finished_result,
    load_predictor,
    preset_text,
    read_result,
    verify_auto,
    write_page,
)
from nfgnn.checksums import read_checksums, write_checksums
from nfgnn.data import load_dataset, split
from nfgnn.errors import UserError
from nfgnn.training import (
    Graph,
    NodeClassifier,
    RunConfig,
    RunFolder,
    load_run,
    read_summary,
)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.of(load_dataset("karate"))


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory, graph: Graph):
    folder = tmp_path_factory.mktemp("auto") / "out"
    result, final = write_search(folder, graph)
    return folder, result, final


@pytest.fixture
def folder(search, tmp_path: Path) -> Path:
    """Return a copy to damage."""
    return Path(shutil.copytree(search[0], tmp_path / "out"))


def test_the_folder_is_complete_and_nothing_else_is_left(search) -> None:
    folder, result, _ = search
    assert [path.name for path in folder.parent.iterdir()] == ["out"]
    names = {path.name for path in folder.iterdir()}
    assert names == {
        *("SHA256SUMS", "config.json", "summary.json", "report.json", "report.md", "seed-0"),
        *("auto.json", "best.toml", "ensemble"),
    }
    listed = read_checksums(folder)
    assert {"auto.json", "best.toml", "ensemble/SHA256SUMS", "seed-0/SHA256SUMS"} <= listed.keys()
    count, damaged = verify_auto(folder)
    assert not damaged
    assert count > 15
    assert read_result(folder) == result
    assert finished_result(folder, DESCRIPTION) == result
    assert finished_result(folder, {**DESCRIPTION, "seed": 1}) is None
    summary = read_summary(folder)
    assert summary["test_accuracy"]["values"] == [result.test.value]
    assert summary["epochs"][0] > 1


def test_models_predict_as_before_they_were_written(search, graph: Graph) -> None:
    folder, result, final = search
    data = graph.data
    ensemble = load_predictor(folder, device="cpu")
    assert isinstance(ensemble, EnsembleClassifier)
    expected = final.classifier.predict_proba(data)
    torch.testing.assert_close(ensemble.predict_proba(data), expected, atol=1e-6, rtol=0)
    single = load_predictor(folder, device="cpu", single=True)
    assert isinstance(single, NodeClassifier)
    expected = final.run.classifier.predict_proba(data)
    torch.testing.assert_close(single.predict_proba(data), expected, atol=1e-6, rtol=0)
    test = split(data, "stratified", 0).test_mask
    correct = ensemble.predict(data)[test] == data.y[test]
    assert float(correct.double().mean()) == pytest.approx(result.ensemble_test.value)
    assert single.score(split(data, "stratified", 0)) == pytest.approx(result.test.value)


def test_a_single_model_has_no_ensemble(tmp_path: Path, graph: Graph) -> None:
    result, _ = write_search(tmp_path / "out", graph, single=True)
    assert result.ensemble is None
    assert not (tmp_path / "out" / "ensemble").exists()
    assert isinstance(load_predictor(tmp_path / "out", device="cpu"), NodeClassifier)


def test_presets_keep_every_setting(tmp_path: Path) -> None:
    path = tmp_path / "best.toml"
    for entry in load_portfolio():
        path.write_text(preset_text(entry.config, "a graph\n[evil]"), encoding="utf-8")
        assert RunConfig.resolve(entry.config.model, {}, None, None, str(path)) == entry.config


def test_the_best_configuration_trains_the_same_model_again(search, graph: Graph) -> None:
    folder, result, _ = search
    data = split(graph.data, "stratified", 0)
    again = NodeClassifier.from_preset(folder / "best.toml", seed=0, device="cpu").fit(data)
    assert again.config_ == result.best.config
    expected = load_run(folder, device="cpu").predict_proba(data)
    torch.testing.assert_close(again.predict_proba(data), expected, atol=1e-6, rtol=0)


def test_a_page_gets_a_checksum(folder: Path) -> None:
    write_page(folder, "<html></html>")
    assert "auto.html" in read_checksums(folder)
    assert not verify_auto(folder)[1]
    (folder / "auto.html").write_text("changed")
    assert verify_auto(folder)[1].keys() == {"auto.html"}


def test_other_content_is_replaced_only_with_overwrite(folder: Path) -> None:
    other = {**DESCRIPTION, "seed": 1}
    with (
        pytest.raises(UserError, match="--overwrite"),
        AutoFolder.open(folder, other, resume=True),
    ):
        pass
    (folder / "ensemble" / "notes.txt").write_text("mine")
    with (
        pytest.raises(UserError, match=r"notes\.txt"),
        AutoFolder.open(folder, other, resume=False, overwrite=True),
    ):
        pass
    assert (folder / "ensemble" / "notes.txt").read_text() == "mine"


def test_unfinished_searches_are_resumed_or_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with AutoFolder.open(out, DESCRIPTION, resume=False) as files:
        (files.runs / "0a").mkdir()
        with (
            pytest.raises(UserError, match="another process"),
            AutoFolder.open(out, DESCRIPTION, resume=True),
        ):
            pass
    with AutoFolder.open(out, DESCRIPTION, resume=True) as files:
        assert (files.runs / "0a").is_dir()
    with (
        pytest.raises(UserError, match="unfinished search with other settings"),
        AutoFolder.open(out, {"seed": 7}, resume=True),
    ):
        pass
    with AutoFolder.open(out, DESCRIPTION, resume=False) as files:
        assert not any(files.runs.iterdir())
        (files.runs / "0b").mkdir()
        (files.runs / "0b" / "thesis.tex").write_text("mine")
    with (
        pytest.raises(UserError, match=r"thesis\.tex"),
        AutoFolder.open(out, DESCRIPTION, resume=False, overwrite=True),
    ):
        pass


def test_runs_and_searches_do_not_mix(tmp_path: Path) -> None:
    """Both keep unfinished work under the same name."""
    description = {"dataset": "a", "fingerprint": "b", "protocol": "full", "seeds": [0]}
    with AutoFolder.open(tmp_path / "out", DESCRIPTION, resume=False):
        pass
    with (
        pytest.raises(UserError, match="unfinished search of `nfgnn auto`"),
        RunFolder.open(tmp_path / "out", {**description, "config": {}}, resume=False),
    ):
        pass
    with RunFolder.open(tmp_path / "other", {**description, "config": {}}, resume=False):
        pass
    with (
        pytest.raises(UserError, match="unfinished runs of `nfgnn train`"),
        AutoFolder.open(tmp_path / "other", DESCRIPTION, resume=False),
    ):
        pass


def reseal(folder: Path) -> None:
    """Write the checksums of changed files anew, as somebody with bad intentions would."""
    for part in (*folder.glob("ensemble/member-*"), folder / "ensemble", folder):
        write_checksums(part, read_checksums(part))


def change_json(path: Path, **changes) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, **changes}))


MEMBER = {"name": "GCN", "weight": 1.0, "temperature": 1.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": []}, "1 to 1000 members"),
        ({"members": [MEMBER, MEMBER]}, "do not add up to 1"),
        ({"members": [{**MEMBER, "weight": -1.0}]}, "weight of GCN"),
        ({"members": [{**MEMBER, "weight": "1"}]}, r"members\[0\].weight has"),
        ({"members": [{**MEMBER, "temperature": 0.0}]}, "temperature"),
        ({"members": [MEMBER] * 2000}, "1 to 1000 members"),
        ({"temperature": None}, "temperature"),
        ({"temperature": 10**400}, "ensemble.json is damaged"),
        ({"kind": "nfgnn model"}, "does not describe an ensemble"),
    ],
)
def test_hostile_ensembles_are_refused(folder: Path, changes: dict, message: str) -> None:
    change_json(folder / "ensemble" / "ensemble.json", **changes)
    with pytest.raises(UserError, match=r"ensemble\.json: is damaged"):
        load_predictor(folder)
    reseal(folder)
    with pytest.raises(UserError, match=message):
        load_predictor(folder)
    assert verify_auto(folder)[1]
    load_predictor(folder, single=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"leaderboard": []}, "leaderboard is empty"),
        ({"ensemble": {"members": 1}}, "ensemble.members has"),
        ({"seconds": 10**400}, r"auto\.json is damaged"),
    ],
)
def test_hostile_results_are_refused(folder: Path, changes: dict, message: str) -> None:
    change_json(folder / "auto.json", **changes)
    with pytest.raises(UserError, match=r"auto\.json: is damaged"):
        load_predictor(folder)
    reseal(folder)
    with pytest.raises(UserError, match=message):
        load_predictor(folder)
    assert verify_auto(folder)[1]


def test_missing_parts_are_named(folder: Path) -> None:
    (folder / "auto.json").unlink()
    with pytest.raises(UserError, match=r"auto\.json: is missing"):
        load_predictor(folder)
    assert verify_auto(folder)[1] == {"auto.json": "is missing"}


def test_a_missing_ensemble_is_not_replaced_by_the_single_model(folder: Path) -> None:
    shutil.rmtree(folder / "ensemble")
    with pytest.raises(UserError, match="holds no ensemble"):
        load_predictor(folder)
    assert verify_auto(folder)[1] == {"ensemble/SHA256SUMS": "is missing"}


def test_nested_json_is_refused(folder: Path) -> None:
    (folder / "ensemble" / "ensemble.json").write_text("[" * 100_000)
    reseal(folder)
    with pytest.raises(UserError, match="damaged"):
        load_predictor(folder)


def test_a_finished_search_with_damage_is_named(folder: Path) -> None:
    weights = next(folder.glob("ensemble/member-1/weights.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-4] + b"abcd")
    with pytest.raises(UserError, match=r"weights\.safetensors.*--overwrite"):
        finished_result(folder, DESCRIPTION)
