"""The committed search: all of it is there, no model had more draws than another, and the presets are its winners."""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
LINES = ROOT / "results" / "search.jsonl"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_draw_and_every_finalist_was_trained_in_every_cell() -> None:
    search = script("search_presets")
    known = search.read([LINES])
    jobs = [
        (r, c, f) for r in search.SEARCH for c in search.cells_of(r) for f in search.families_of(r)
    ]
    assert len(jobs) > 300
    for round, cell, family in jobs:
        assert search.Search(known, round, LINES).count_missing(cell, family) == (0, 0), (
            round,
            cell,
            family,
        )
    victim = next(
        key for key, line in known.items() if line["stage"] == 1 and line["family"] == "BernNet"
    )
    del known[victim]
    lacking = [
        search.Search(known, r, LINES).count_missing(c, f)[0]
        for r, c, f in jobs
        if (c, f) == victim[:2]
    ]
    assert sum(lacking) == 1  # it would be seen


def test_polynomial_models_have_the_same_draws_of_the_numbers_that_they_have() -> None:
    search = script("search_presets")
    for round in ("wide", *search.TABLES):
        for cell in search.cells_of(round):
            kinds = {}
            for family in ("global", "agreement", "term", "GPRGNN"):
                configs = [config for part in search.draws(cell, family, round) for config in part]
                kinds[family] = {str({key: c[key] for key in search.NUMERIC}) for c in configs}
            sizes = [len(numbers) for numbers in kinds.values()]
            assert max(sizes) - min(sizes) <= 2, (round, cell)  # a draw may come twice
            assert kinds["global"] == kinds["agreement"] == kinds["term"], (round, cell)
            if round != "wide":  # there one structure has the draws of all
                assert kinds["global"] == kinds["GPRGNN"], (round, cell)


def test_presets_are_the_winners_of_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = script("write_presets")
    copied = tmp_path / "nfgnn" / "presets"
    shutil.copytree(ROOT / "nfgnn" / "presets", copied)
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(writer, "PRESETS", copied)
    monkeypatch.setattr(sys, "argv", ["write_presets", str(LINES)])
    writer.main()
    for path in sorted(copied.glob("*.toml")):
        assert path.read_text() == (ROOT / "nfgnn" / "presets" / path.name).read_text(), path.name
    assert (tmp_path / "results" / "search.md").read_text() == (
        ROOT / "results" / "search.md"
    ).read_text()
