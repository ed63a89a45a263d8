"""Every example runs, prints something and fits on a screen."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_example_runs(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(file), run_name="__main__")
    assert capsys.readouterr().out.strip(), "an example prints something"


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_example_fits_on_a_screen_and_says_what_it_shows(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert text.startswith('"""')


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4
