"""The numbers of the commands and of the public classes are those of the golden files.

On the machine that wrote a file floats are compared bit for bit; elsewhere within a tolerance.
``write_golden.py`` writes the files.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from golden.tools import REPOSITORY, Shell, differences, digest, machine, read_golden
from golden.values import WITH_DATA, WITHOUT_DATA, Place

Compute = Callable[[Place], dict[str, Any]]


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """One process for all commands: to import torch takes longer than most of them."""
    process = Shell(tmp_path_factory.mktemp("golden"))
    yield process
    process.close()


def check(compute: Compute, place: Place) -> None:
    """Compute a value and compare it with its file."""
    golden = read_golden(compute.__name__)
    found = compute(place)
    lines = differences(golden["values"], found, exact=golden["machine"] == machine())
    assert not lines, "\n".join(lines[:20])


@pytest.mark.parametrize("compute", WITHOUT_DATA, ids=lambda compute: compute.__name__)
def test_generated_graphs(compute: Compute, shell: Shell, tmp_path: Path) -> None:
    check(compute, Place(shell, tmp_path))


@pytest.mark.parametrize("compute", WITH_DATA, ids=lambda compute: compute.__name__)
def test_real_graphs(compute: Compute, shell: Shell, tmp_path: Path, data_root: Path) -> None:
    check(compute, Place(shell, tmp_path, data_root))


def test_committed_tables_are_the_golden_ones() -> None:
    """The tables in ``results/`` are those that ``result_tables`` makes again from the runs."""
    for name, expected in read_golden("result_tables")["values"].items():
        assert digest((REPOSITORY / "results" / name).read_bytes()) == expected, name


def test_records_of_both_formats_give_the_same_tables() -> None:
    values = read_golden("records_v1")["values"]
    assert values["sqlite"] == values["csv"]
    assert any("NFGNN (best)" in text for text in values["csv"].values())
