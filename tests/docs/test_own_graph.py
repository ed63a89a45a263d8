"""The tutorial on own graphs runs, and the table of data sets agrees with the registry."""

import shlex
import subprocess
from pathlib import Path

import pytest
from pyarrow import csv
from test_readme import REPOSITORY, blocks, run_command

from nfgnn.data import REGISTRY


def test_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names: dict[str, object] = {}
    for mark, language, code in blocks("docs/own-graph.md"):
        if language == "python":
            exec(compile(code, "own-graph.md", "exec"), names)
            continue
        for line in code.splitlines():
            if line.startswith("nfgnn "):
                run_command(line, mark, None, monkeypatch)
            else:
                subprocess.run(shlex.split(line), check=True, capture_output=True)
    first = csv.read_csv("predictions.csv")
    grown = csv.read_csv("grown.csv")
    columns = ["id", "predicted", "probability", "margin"]
    assert first.column_names == [*columns, "label", "part"]
    assert grown.column_names == columns
    assert (first.num_rows, grown.num_rows) == (200, 201)
    assert grown["id"][-1].as_py() == "newcomer"
    assert set(grown["predicted"].to_pylist()) <= {"art", "music", "science"}


def test_the_example_in_the_text_is_the_template(tmp_path: Path) -> None:
    from nfgnn.data import write_template

    page = (REPOSITORY / "docs/own-graph.md").read_text(encoding="utf-8")
    for file in sorted(write_template(tmp_path / "t").iterdir()):
        assert "".join(file.read_text().splitlines(keepends=True)[:3]) in page


@pytest.mark.parametrize("name", REGISTRY)
def test_the_table_of_names_is_complete(name: str) -> None:
    entry = REGISTRY[name]
    rows = (REPOSITORY / "docs/datasets.md").read_text(encoding="utf-8").splitlines()
    row = next(line for line in rows if line.startswith(f"| `{name}` |"))
    for part in (
        f"{entry.nodes:,}",
        f"{entry.edges:,}",
        f"{entry.features:,}",
        str(entry.classes),
        entry.source,
    ):
        assert part in row
