"""``nfgnn auto``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.auto_results import auto_result
from pyarrow import csv

from nfgnn.cli.auto import _print_result

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def portfolio(tmp_path: Path) -> Path:
    """Return a portfolio of three quick configurations."""
    models = ("GCN", "MLP", "LINK")
    tables = [f'[[configuration]]\nmodel = "{model}"\nepochs = 15\n' for model in models]
    path = tmp_path / "quick.toml"
    path.write_text("\n".join(tables))
    return path


@pytest.mark.figures
def test_from_a_graph_to_a_report_and_predictions(call: Call, portfolio: Path) -> None:
    command = ("auto", "karate", "--protocol", "stratified", "--max-runs", "6", "--workers", "1")
    options = ("--portfolio", str(portfolio), "--out", "found")
    status, out, err = call(*command, *options, "--json")
    assert status == 0, err
    assert "best so far" in err
    result = json.loads(out)
    # What `train` prints, for the best single model.
    assert result["dataset"] == "karate"
    assert 0 <= result["test_accuracy"]["mean"] <= 1
    assert {entry["name"] for entry in result["leaderboard"]} <= {"GCN", "MLP", "LINK"}
    assert result["model"] == result["leaderboard"][0]["config"]["model"]
    assert 2 <= result["search"]["runs"] <= 6
    assert result["page"] == "found/auto.html"
    assert result["value"]["sentences"]
    assert result["warnings"] == json.loads(Path("found/auto.json").read_text())["warnings"]
    page = Path("found/auto.html").read_text(encoding="utf-8")
    assert "Leaderboard" in page
    assert Path("found/run.png").read_bytes().startswith(b"\x89PNG")
    assert call("verify", "found")[0] == 0
    assert call("predict", "found", "-o", "all.csv")[0] == 0
    assert csv.read_csv("all.csv").num_rows == 34
    # The same command again trains nothing, and prints the report.
    status, out, err = call(*command, *options)
    assert status == 0, err
    assert "already contains this result" in err
    text = " ".join(out.split())
    assert "protocol stratified: leaderboard" in text
    assert "train again nfgnn train karate" in text
    assert "page found/auto.html" in text


def test_report_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    warning = "the model never predicts 'art'"
    result = auto_result(notes=("LINKX was left out",), warnings=(warning,))
    _print_result(result, Path("runs/survey/auto.html"))
    out = " ".join(capsys.readouterr().out.split())
    for part in (
        *result.value.sentences,
        "ensemble of 2",
        "majority",
        "80.0 to 88.0",
        "nodes per class, train/val/test: art: 200/66/67 · music: 300/100/100",
        "note: LINKX was left out",
        f"warning: {warning}",
        "best model NFGNN with rank=3, gate=agreement, lr=0.02",
        f"train again {result.command}",
    ):
        assert part in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--time", "soon"), "'soon' is not a valid duration"),
        (("--time", "1m", "--max-runs", "3"), "mutually exclusive"),
        (("--protocol", "inductive"), "inductive"),
        (("--portfolio", "missing.toml"), "missing.toml"),
    ],
)
def test_invalid_options_exit_with_status_2(
    call: Call, options: tuple[str, ...], message: str
) -> None:
    status, _, err = call("auto", "karate", *options)
    assert status == 2
    assert message in err
