"""From a graph to the best model for it."""

import shlex
from pathlib import Path

import pytest
import torch
from helpers.small_stores import small_store

from nfgnn import NodeClassifier
from nfgnn.auto import BOTH, AutoResult, AutoTask, load_predictor, read_result, run_auto
from nfgnn.data import load_dataset, split
from nfgnn.errors import UserError
from nfgnn.progress import Progress
from nfgnn.training import Graph, accuracy, load_run

PORTFOLIO = """
[[configuration]]
model = "GCN"
epochs = 12
[[configuration]]
model = "MLP"
epochs = 12
[[configuration]]
model = "LINK"
epochs = 12
"""


def auto(graph: Graph, folder: Path | None, portfolio: Path) -> AutoResult:
    portfolio.write_text(PORTFOLIO)
    return run_auto(
        graph,
        "stratified",
        3,
        time=None,
        max_runs=20,
        metric=None,
        device="cpu",
        workers=1,
        folder=folder,
        source=None,
        portfolio=portfolio,
        single=False,
        resume=False,
        overwrite=False,
        progress=Progress(quiet=True),
    )


@pytest.fixture(scope="module")
def karate() -> Graph:
    return Graph.of(load_dataset("karate"))


@pytest.fixture(scope="module")
def searched(karate: Graph, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, AutoResult]:
    folder = tmp_path_factory.mktemp("searched")
    return folder / "run", auto(karate, folder / "run", folder / "portfolio.toml")


def test_the_result_describes_the_folder(searched: tuple[Path, AutoResult]) -> None:
    folder, result = searched
    assert read_result(folder) == result
    assert result.folder == folder
    assert result.validation_splits == 5
    names = [entry.name for entry in result.leaderboard]
    assert len(set(names)) == len(names)
    assert {"GCN", "MLP", "LINK"} <= set(names)
    assert 0 < result.seconds_to_first < result.seconds
    assert not folder.with_name(".run.partial").exists()


def test_test_scores_are_those_of_the_models_in_the_folder(
    karate: Graph, searched: tuple[Path, AutoResult]
) -> None:
    folder, result = searched
    data = split(karate.data, "stratified", 3)
    y = data.y[data.test_mask]
    single = load_run(folder, device="cpu").predict_proba(data)[data.test_mask]
    ensemble = load_predictor(folder, device="cpu").predict_proba(data)[data.test_mask]
    assert result.test is not None
    assert result.ensemble_test is not None
    assert result.test.value == pytest.approx(accuracy(single, y))
    assert result.ensemble_test.value == pytest.approx(accuracy(ensemble, y))


def test_the_best_configuration_trains_the_same_model_again(
    karate: Graph, searched: tuple[Path, AutoResult]
) -> None:
    folder, result = searched
    words = shlex.split(result.command)
    preset = words[words.index("--preset") + 1]
    assert words[words.index("--seed") + 1] == "3"
    data = split(karate.data, "stratified", 3)
    again = NodeClassifier.from_preset(preset, seed=3, device="cpu").fit(data)
    found = load_run(folder, device="cpu")
    torch.testing.assert_close(again.predict_proba(data), found.predict_proba(data))


def test_a_finished_search_is_not_repeated(
    karate: Graph, searched: tuple[Path, AutoResult]
) -> None:
    folder, result = searched
    modified = (folder / "auto.json").stat().st_mtime_ns
    assert auto(karate, folder, folder.with_name("portfolio.toml")) == result
    assert (folder / "auto.json").stat().st_mtime_ns == modified


def test_a_search_in_memory_finds_the_same(
    karate: Graph, searched: tuple[Path, AutoResult], tmp_path: Path
) -> None:
    result = auto(karate, None, tmp_path / "portfolio.toml")
    assert result.folder is None
    scores = [(entry.name, entry.validation) for entry in result.leaderboard]
    assert scores == [(entry.name, entry.validation) for entry in searched[1].leaderboard]
    assert result.ensemble == searched[1].ensemble


def test_stores_are_refused(tmp_path: Path) -> None:
    store = small_store(tmp_path / "store", load_dataset("karate"))
    with pytest.raises(UserError, match="is a store"):
        auto(Graph.of(store.labels()), None, tmp_path / "portfolio.toml")


def test_cheap_models_come_first_on_large_graphs(
    karate: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = AutoTask(karate, "stratified")
    assert not task.is_large
    usual = task.entries()
    monkeypatch.setattr("nfgnn.auto.auto._LARGE", 10)
    assert task.is_large
    families = [entry.family for entry in task.entries()]
    cheap = len(usual) - families.count(BOTH)
    assert BOTH not in families[:cheap]
    both = [entry for entry in usual if entry.family == BOTH]
    assert task.entries()[cheap:] == both
