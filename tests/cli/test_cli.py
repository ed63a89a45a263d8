"""The program as a whole: help, completion, JSON, mistakes and interruptions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nfgnn import __version__
from nfgnn.cli import app

COMMANDS = (
    "train",
    "auto",
    "predict",
    "explore",
    "analyze",
    "datasets",
    "models",
    "tune",
    "reproduce",
    "precompute",
    "serve",
    "verify",
)
QUICK = ("--protocol", "stratified", "--runs", "2", "--set", "epochs=15", "--set", "K=3")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_json_and_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "100"})
    assert result.exit_code == 0
    assert "Usage" in result.output
    assert "--json" in result.output
    assert f"Example:  nfgnn {command}" in result.output


def test_help_groups_the_options() -> None:
    result = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "100"})
    panels = ["Data", "Model and training", "Execution", "Output"]
    positions = [result.output.index(f"─ {panel} ─") for panel in panels]
    assert positions == sorted(positions)


def test_version(call) -> None:
    assert call("--version") == (0, f"nfgnn {__version__}\n", "")


def run_python(code: str, folder: Path, **environment: str) -> str:
    """Run code in a fresh interpreter and return what it prints."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


def test_the_command_line_imports_nothing_slow(tmp_path: Path) -> None:
    """How long ``nfgnn --help`` takes depends on the machine; what it imports does not."""
    slow = "('torch', 'numpy', 'pyarrow', 'matplotlib')"
    code = f"import sys, nfgnn.cli; print([name for name in {slow} if name in sys.modules])"
    assert run_python(code, tmp_path).strip() == "[]"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("nfgnn train te", {"texas"}),
        ("nfgnn train --model Sc", {"ScalableNFGNN", "ScalableSGC"}),
        ("nfgnn train --model nf", {"nfgnn"}),
        ("nfgnn train --protocol s", {"semi", "stratified"}),
        ("nfgnn auto --metric ro", {"roc_auc"}),
        ("nfgnn tune --preset ", {"best", "paper"}),
        ("nfgnn reproduce f", {"full", "figures"}),
        ("nfgnn precompute --basis ch", {"chebyshev"}),
        ("nfgnn train --engine r", {"ray"}),
        ("nfgnn train --device cu", {"cuda"}),
    ],
)
def test_shell_completion_without_torch(typed: str, expected: set[str], tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from nfgnn.cli import app\n"
        "try: app(prog_name='nfgnn')\n"
        "except SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    words = typed.split(" ")
    out = run_python(
        code,
        tmp_path,
        _NFGNN_COMPLETE="complete_bash",
        COMP_WORDS=typed,
        COMP_CWORD=str(len(words) - 1),
    )
    *offered, torch_is_loaded = out.split()
    assert expected <= set(offered)
    assert all(name.startswith(words[-1]) for name in offered)
    assert torch_is_loaded == "False"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "karate", "--model", "GNN"], "unknown model 'GNN': choose one of"),
        (["train", "karate", "--model", "NFGN"], "did you mean NFGNN?"),
        (["train", "karate", "--protocol", "half"], "unknown protocol 'half'"),
        (["train", "karate", "--protocol", "ful"], "did you mean full?"),
        (["train", "karate", "--protocol", "geom-gcn"], "does not come with ten fixed splits"),
        (["train", "karate", "--set", "K"], "use --set KEY=VALUE"),
        (
            ["train", "karate", "--set", "K=ten"],
            "K = 'ten' is not valid: it takes a whole number from 0",
        ),
        (["train", "karate", "--set", "depth=2"], "NFGNN has no setting 'depth'"),
        (["train", "karate", "--set", "hiden_channels=3"], "did you mean hidden_channels?"),
        (["train", "karate", "--set", "gate=none"], "unknown gate 'none'"),
        (["train", "karate", "--preset", "good"], "unknown preset 'good'"),
        (["train", "karate", "--preset", "papr"], "did you mean paper?"),
        (["train", "karate", "--device", "toaster"], "unknown device 'toaster'"),
        (["train", "karate", "--engine", "rai"], "did you mean ray?"),
        (["train", "karate", "--column", "lable=x"], "did you mean label?"),
        (["train", "no-such-graph"], "no-such-graph"),
        (["train", "texs"], "did you mean texas?"),
        (["predict", "nowhere", "karate", "-o", "p.csv"], "nowhere is not a run folder"),
        (["predict", "nowhere", "karate", "-o", "p.xlsx"], "use .csv or .parquet"),
        (["explore", "nowhere"], "nowhere is not a run folder"),
        (["explore", "nowhere", "-o", "no/e.html"], "the folder no does not exist"),
        (["analyze", "texs"], "did you mean texas?"),
        (["datasets", "texs"], "did you mean texas?"),
        (["models", "GNN"], "unknown model 'GNN'"),
        (["tune", "karate", "--preset", "none"], "unknown preset 'none': choose one of best"),
        (["tune", "karate", "--seeds", "some"], "a range such as 0-9"),
        (["tune", "karate", "--set", "dropot=0.1"], "did you mean dropout?"),
        (["reproduce", "ful"], "did you mean full?"),
        (["reproduce", "full", "--datasets", "texs"], "did you mean texas?"),
        (["precompute", "karate", "--out", "s", "--basis", "chebishev"], "mean chebyshev?"),
        (["precompute", "karate", "--out", "s", "--memory", "much"], "such as 4GB"),
        (["precompute", "karate", "--out", "s", "--dtype", "float64"], "unknown dtype"),
        (["precompute", "karate", "--out", "s", "--lambda-max", "nan"], "lambda_max = nan is not"),
        (["precompute", "karate", "--out", "s", "--lambda-max", "0"], "lambda_max = 0.0 is not"),
        (["precompute", "karate", "--out", "s", "--device", "zzz"], "unknown device 'zzz'"),
        (["precompute", "karate", "--out", "s", "--K", "1000000"], "K = 1000000 is not valid"),
        (["precompute", "karate", "--out", "s", "--basis", "jacobi(nan, 1)"], "finite a > -1"),
        (["precompute", "karate", "--out", "s", "--basis", "jacobi(x)"], "are not numbers"),
        (["train", "karate", "--set", "K=inf"], "K = inf is not valid: it takes a whole number"),
        (["train", "karate", "--set", "K=nan"], "K = nan is not valid"),
        (["train", "karate", "--set", f"K={'9' * 5000}"], "is not valid: it takes a whole number"),
        (["train", "karate", "--set", f"K={'[' * 5000}"], "is not valid: it takes a whole number"),
        (["train", "karate", "--set", "patience=0"], "patience = 0 is not valid"),
        (["train", "karate", "--set", "patience=-1"], "patience = -1 is not valid"),
        (["train", "karate", "--set", "basis=[1]"], "basis = [1] is not valid"),
        (["train", "karate", "--set", "rank=two"], "rank = 'two' is not valid"),
        (["train", "karate", "--set", "lr=-1"], "lr = -1 is not valid"),
        (["train", "karate", "--set", "dropout=1.5"], "from 0 to 1 (1 excluded)"),
        (["train", "karate", "--set", "hidden_channels=0"], "hidden_channels = 0 is not valid"),
        (["train", "karate", "--set", "num_layers=-1"], "num_layers = -1 is not valid"),
        (["train", "karate", "--set", "label_smoothing=nan"], "label_smoothing = nan is not valid"),
        (["train", "karate", "--set", "lr=1979-05-27"], "is not valid: it takes a number"),
        (["train", "karate", "--device", "xpu"], "is not available on this machine"),
        (["train", "karate", "--seed", "99999999999999999999"], "less than or equal to"),
        (["train", "karate", "--runs", "999999999999"], "less than or equal to"),
        (["tune", "karate", "--set", "dropout=-1"], "dropout = -1 is not valid"),
        (["tune", "karate", "--seeds", "0-99999999999"], "at most 10000 seeds"),
    ],
)
def test_a_mistake_is_one_message_and_status_2(
    call, tmp_path: Path, arguments: list[str], message: str
) -> None:
    status, out, err = call(*arguments)
    assert status == 2
    assert message in err
    assert "Traceback" not in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "karate", "--set", "nonsense=1"],
        ["train", "karate", "--set", "gate=none"],
        ["train", "karate", "--device", "cuda:99"],
        ["train", "karate", "--out", "file/run"],
        ["predict", "run", "karate", "-o", "p.xlsx"],
        ["analyze", "karate", "--out", "file"],
        ["tune", "karate", "--set", "nonsense=1"],
        ["tune", "karate", "--seeds", "1000"],
        ["tune", "karate", "--out", "file/table.toml"],
        ["tune", "karate", "--presets"],
        ["tune", "--presets", "--rounds", "seventh"],
        ["tune"],
        ["reproduce", "full", "--models", "ResNet"],
        ["reproduce", "full", "--seed", "3"],
        ["precompute", "karate", "--out", "file/store"],
        ["precompute", "karate", "--out", "s", "--basis", "jacobi(1, 2, 3)"],
    ],
)
def test_invalid_options_are_refused_before_a_graph_is_read(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    import nfgnn.data.load

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a graph was read")

    monkeypatch.setattr(nfgnn.data.load, "check_graph", fail)
    (tmp_path / "file").touch()
    status, out, err = call(*arguments)
    assert status == 2, err
    assert err.startswith("nfgnn: ")
    assert out == ""


def test_json_of_commands_on_a_run(call) -> None:
    status, out, _ = call("train", "karate", *QUICK, "--out", "run", "--json")
    assert status == 0
    assert json.loads(out)["run"] == "run"
    status, out, _ = call("predict", "run", "karate", "-o", "p.csv", "--json")
    predicted = json.loads(out)
    assert status == 0
    assert (predicted["predictions"], predicted["output"]) == (34, "p.csv")
    assert predicted["seed"] in (0, 1)
    status, out, _ = call("explore", "run", "-o", "e.html", "--json")
    explored = json.loads(out)
    assert status == 0
    assert (explored["nodes"], explored["shown"], explored["seed"]) == (34, 34, predicted["seed"])
    assert explored["bytes"] == Path("e.html").stat().st_size


def test_ctrl_c_leaves_a_message_and_no_run_folder(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nfgnn.progress import Progress

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "status", interrupt)
    status, _, err = call("train", "karate", *QUICK, "--out", "run")
    assert status == 130
    assert "--resume" in err
    assert not (tmp_path / "run").exists()
