"""Every example fits on a screen, and its notebook has the same code, which runs."""

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
from helpers.notebooks import EXAMPLES, notebook_of

SCRIPTS = sorted(EXAMPLES.glob("*.py"))


def _name(script: Path) -> str:
    return script.stem


def _read_notebook(script: Path) -> dict[str, Any]:
    return json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))


def _code_cells(notebook: dict[str, Any]) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_notebook_runs(
    script: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The next test makes sure that the script has the same code."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(_code_cells(_read_notebook(script))):
        exec(compile(cell, f"{script.stem}.ipynb, code cell {number}", "exec"), namespace)
    plt.close("all")
    assert capsys.readouterr().out.strip(), "an example prints something"


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_notebook_is_that_of_the_script_without_outputs(script: Path) -> None:
    notebook = _read_notebook(script)
    assert notebook == notebook_of(script), "run `make notebooks`"
    cells = _code_cells(notebook)
    assert len(cells) >= 3
    lines = [line for cell in cells for line in cell.splitlines() if line.strip()]
    _, _, code = script.read_text(encoding="utf-8").split('"""', 2)
    kept = [line for line in code.splitlines() if line.strip() and not line.startswith("# %%")]
    assert lines == kept
    for cell in notebook["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_example_fits_on_a_screen_and_says_what_it_shows(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert text.startswith('"""')


def test_there_are_the_examples_of_the_documentation() -> None:
    names = {script.stem for script in SCRIPTS}
    assert names >= {"quickstart", "own_graph", "filters_of_nodes", "own_model_with_nf_conv"}
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == names
