"""The table of ensembles keeps earlier results and replaces those of the same split."""

import importlib.util
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "results"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    file = REPOSITORY / "benchmarks" / "modern_ensembles.py"
    spec = importlib.util.spec_from_file_location("modern_ensembles", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["modern_ensembles"] = module  # where the annotations of its classes are resolved
    spec.loader.exec_module(module)
    return module


def test_the_committed_table_is_the_one_of_its_results(script: ModuleType, tmp_path: Path) -> None:
    shutil.copy(RESULTS / "modern-ensembles.csv", tmp_path)
    script.write_table([], tmp_path)
    for name in ("modern-ensembles.csv", "modern-ensembles.md"):
        assert (tmp_path / name).read_bytes() == (RESULTS / name).read_bytes()


def test_a_new_result_replaces_the_earlier_one(script: ModuleType, tmp_path: Path) -> None:
    shutil.copy(RESULTS / "modern-ensembles.csv", tmp_path)
    earlier = script.read_table(tmp_path / "modern-ensembles.csv")
    better = replace(earlier[3], test=1.0)
    script.write_table([better], tmp_path)
    expected = [*earlier[:3], better, *earlier[4:]]
    assert script.read_table(tmp_path / "modern-ensembles.csv") == expected
