"""The preset search: the committed one is complete, and an interrupted one resumes."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from nfgnn.data import load_dataset, split
from nfgnn.errors import UserError
from nfgnn.paper.search import preset_search, rounds
from nfgnn.paper.search.preset_search import Task, halve_validation, run_preset_search
from nfgnn.paper.search.results import Result, SearchResults
from nfgnn.paper.search.rounds import SEARCH, Cell, cells_of, families_of
from nfgnn.training import execution, presets

COMMITTED = Path(__file__).parents[2] / "results" / "search.parquet"
CELL = Cell("mixed", "full")


@pytest.fixture(scope="module")
def committed() -> SearchResults:
    return SearchResults(COMMITTED)


def test_committed_search_is_complete(committed: SearchResults) -> None:
    tasks = [(r, c, f) for r in SEARCH for c in cells_of(r) for f in families_of(r)]
    assert len(tasks) > 300
    for round, cell, family in tasks:
        counts = Task(round, cell, family, committed).count_missing()
        assert counts == (0, 0), (round, cell, family)
    victim = next(
        result
        for result in committed._best.values()
        if (result.stage, result.family) == (1, "BernNet")
    )
    del committed._best[victim.key]
    try:
        missing = [
            Task(round, cell, family, committed).count_missing()[0]
            for round, cell, family in tasks
            if (cell, family) == (victim.cell, victim.family)
        ]
    finally:
        committed._best[victim.key] = victim
    assert sum(missing) == 1


@pytest.fixture
def small_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """One cell on a built-in graph, with two draws of two epochs and three rounds."""
    numbers = {"lr": [0.01, 0.05, 0.1], "alpha": [0.1, 0.5, 0.9], "epochs": [2]}
    structures = [{"features": "row"}, {"features": "row", "K": 2}]
    table = {"full": {"mixed": {"structures": structures}}}
    definition = {
        "numbers": numbers,
        "smoothing": {"label_smoothing": [0.0, 0.2]},
        "paper_numbers": numbers,
        "wide": table,
        "smooth": table,
    }
    monkeypatch.setattr(rounds, "_definition", lambda: definition)
    monkeypatch.setattr(rounds, "_DRAWS", 2)
    monkeypatch.setattr(rounds, "HELD_OUT", {CELL: 2})
    preset = {"model": "PolyGNN", "features": "row", "epochs": 2}
    monkeypatch.setattr(preset_search, "shipped", lambda *_: preset)


def search(folder: Path, **options: Any) -> list[str]:
    options = {"rounds": ("wide", "smooth", "held"), "families": ["global"], **options}
    return run_preset_search(
        folder / "search.parquet", device="cpu", storage=folder / "search.sqlite", **options
    )


@pytest.mark.usefixtures("small_search")
def test_small_search_from_start_to_preset_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert search(tmp_path, rounds=("wide",), missing=True) == ["wide mixed:full global: 4 draws"]
    trained = search(tmp_path)
    assert [line.split(": ")[0] for line in trained] == [
        "wide mixed:full global",
        "smooth mixed:full global",
        "held mixed:full global",
    ]
    assert search(tmp_path, missing=True) == []
    found = SearchResults(tmp_path / "search.parquet")
    by_stage = [len([r for r in found.rows if r.stage == stage]) for stage in (1, 2, 3)]
    assert by_stage[0] == 8
    assert by_stage[1] >= 8
    assert by_stage[2] >= 4
    for result in found.rows:
        seeds = {1: {3, 5}, 2: {10}, 3: {2}}[result.stage]
        assert len(result.val) == len(result.test) == len(result.epochs or ()) in seeds
        assert all(0 <= value <= 1 for value in result.val)
    monkeypatch.setattr(execution, "train_runs", lambda *_: pytest.fail("trained again"))
    assert search(tmp_path) == []
    folder = tmp_path / "presets"
    shutil.copytree(Path(presets.__file__).parent, folder)
    lines = search(tmp_path, from_records=True, write=True, presets=folder)
    assert len(lines) == 5
    assert "mixed = {" in (folder / "polygnn.toml").read_text()
    assert "| mixed, full | 8: " in (tmp_path / "search.md").read_text()


@pytest.mark.usefixtures("small_search")
def test_interrupted_search_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search(tmp_path / "whole", rounds=("wide",))
    trained: list[int] = []

    def interrupted(*arguments: Any) -> Any:
        trained.append(1)
        if len(trained) == 9:
            raise KeyboardInterrupt
        return original(*arguments)

    original = execution.train_runs
    monkeypatch.setattr(execution, "train_runs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "resumed", rounds=("wide",))
    search(tmp_path / "resumed", rounds=("wide",))
    # 2 structures x 2 draws x 3 seeds and 4 finalists x 7 further seeds: none is trained twice.
    assert len(trained) == 1 + 12 + 4 * 7
    whole, resumed = (SearchResults(tmp_path / f / "search.parquet") for f in ("whole", "resumed"))
    assert whole.rows == resumed.rows


def test_more_seeds_are_added_to_those_of_a_result(tmp_path: Path) -> None:
    results = SearchResults(tmp_path / "search.parquet")
    config = {"model": "PolyGNN", "lr": 0.01}
    results.add([Result(*CELL, "global", 2, config, [0.5], [0.4], [7])])
    found = Task("wide", CELL, "global", results)._result(2, config, [(0.7, 0.6, 9)])
    assert (found.val, found.test, found.epochs) == ([0.5, 0.7], [0.4, 0.6], [7, 9])
    assert found.val_mean() == pytest.approx(60)
    assert found.val_mean(1) == pytest.approx(50)


def test_validation_nodes_are_halved() -> None:
    data = split(load_dataset("mixed", num_nodes=100), "full", 0)
    halved = halve_validation(data, 0)
    assert abs(int(halved.val_mask.sum()) - int(halved.held_mask.sum())) <= 1
    assert not (halved.val_mask & halved.held_mask).any()
    assert bool(((halved.val_mask | halved.held_mask) == data.val_mask).all())
    assert bool((halved.test_mask == data.test_mask).all())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": ("first",)}, "unknown round of the preset search 'first'"),
        ({"cells": ["cora"]}, "unknown cell of the preset search 'cora'"),
        ({"families": ["GCN"]}, "unknown family of the preset search 'GCN'"),
    ],
)
def test_unknown_names_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        search(tmp_path, missing=True, **options)


def test_damaged_results_are_named(tmp_path: Path) -> None:
    (tmp_path / "search.parquet").write_text("no results")
    with pytest.raises(UserError, match=r"search\.parquet"):
        search(tmp_path, missing=True)


@pytest.mark.parametrize("scores", [{"a": 0.5}, [], ["0.5"]])
def test_scores_that_are_no_list_of_numbers_are_refused(tmp_path: Path, scores: object) -> None:
    path = tmp_path / "search.parquet"
    SearchResults(path).add([Result(*CELL, "global", 2, {"model": "PolyGNN"}, [0.5], [0.4], [7])])
    rows = pq.read_table(path).to_pylist()
    rows[0]["val"] = scores
    pq.write_table(pa.Table.from_pylist(rows), path)
    with pytest.raises(UserError, match=r"search\.parquet does not hold .*: pass another file"):
        SearchResults(path)
