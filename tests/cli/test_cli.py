"""The command line as a user meets it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nfgnn.cli import app, main

QUICK = ["--runs", "2", "--set", "epochs=15", "--set", "K=3"]


def nfgnn(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nfgnn", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run a command inside this process: (status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["nfgnn", *arguments])
        try:
            main()
            status = 0
        except SystemExit as stop:
            status = int(stop.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def test_json_is_one_object_with_the_promised_keys_and_comes_out_the_same_again(
    call, tmp_path: Path
) -> None:
    command = ("train", "karate", "--protocol", "stratified", *QUICK, "--json")
    status, out, _ = call(*command)
    result = json.loads(out)
    assert status == 0
    promised = "dataset model protocol seeds test_accuracy val_accuracy epochs seconds epoch_ms device config run"
    assert set(promised.split()) <= set(result)
    assert set(result["test_accuracy"]) == {"mean", "ci95", "std", "values"}
    assert all(0 <= value <= 1 for value in result["test_accuracy"]["values"])
    assert (result["dataset"], result["model"], result["seeds"]) == ("karate", "NFGNN", [0, 1])
    assert (result["config"]["K"], result["config"]["epochs"]) == (3, 15)
    again = json.loads(call(*command)[1])
    assert again["test_accuracy"] == result["test_accuracy"]
    assert (tmp_path / result["run"] / "run.png").read_bytes().startswith(b"\x89PNG")


def test_table_and_picture_at_the_end(call) -> None:
    status, out, err = call("train", "karate", "--protocol", "stratified", *QUICK, "--out", "here")
    assert status == 0
    assert "mean" in out
    assert "±" in out
    assert "here/run.png" in out
    assert "seed 1: test acc" in err


def test_predict_applies_a_run_to_a_graph(call, tmp_path: Path) -> None:
    call("train", "karate", "--protocol", "stratified", *QUICK, "--out", "run")
    status, _, err = call("predict", "run", "karate", "-o", "p.csv")
    assert status == 0
    assert "34 predictions" in err
    rows = (tmp_path / "p.csv").read_text().splitlines()
    assert len(rows) == 35
    assert rows[0].replace('"', "").split(",")[:4] == ["id", "predicted", "probability", "margin"]


def test_models(call) -> None:
    status, out, _ = call("models")
    assert status == 0
    assert "NFGNN" in out
    rows = json.loads(call("models", "--json")[1])["models"]
    assert {"NFGNN", "PolyGNN", "MLP"} <= {row["name"] for row in rows}
    card = json.loads(call("models", "nfgnn", "--json")[1])
    assert card["settings"]["K"] == 10
    assert "K" in call("models", "NFGNN")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "karate", "--model", "GNN"], "there is no model 'GNN': choose one of"),
        (["train", "karate", "--protocol", "half"], "there is no protocol 'half'"),
        (["train", "karate", "--protocol", "geom-gcn"], "does not come with ten fixed splits"),
        (["train", "karate", "--set", "K"], "write --set KEY=VALUE"),
        (["train", "karate", "--set", "K=ten"], "K = 'ten' is not valid: it takes a value like 10"),
        (["train", "karate", "--set", "depth=2"], "NFGNN has no setting 'depth'"),
        (["train", "karate", "--set", "gate=none"], "unknown gate 'none'"),
        (["train", "karate", "--preset", "good"], "there is no preset 'good'"),
        (["train", "karate", "--device", "toaster"], "device 'toaster' is not known"),
        (["train", "no-such-graph"], "no-such-graph"),
        (["predict", "nowhere", "karate", "-o", "p.csv"], "nowhere is not a run folder"),
        (["models", "GNN"], "there is no model 'GNN'"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(
    call, tmp_path: Path, arguments: list[str], message: str
) -> None:
    status, out, err = call(*arguments)
    assert status == 2
    assert message in err
    assert "Traceback" not in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_predictions_need_a_known_ending_and_an_existing_folder(call, tmp_path: Path) -> None:
    call("train", "karate", "--protocol", "stratified", *QUICK, "--out", "run")
    for target, message in (("p.xlsx", ".csv or .parquet"), ("no/p.csv", "does not exist")):
        status, _, err = call("predict", "run", "karate", "-o", target)
        assert status == 2
        assert message in err
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_help_does_not_wait_for_torch(tmp_path: Path) -> None:
    """Importing the command line must not import what is slow; how long it takes is measured in benchmarks/."""
    code = "import sys, nfgnn.cli; print([m for m in ('torch', 'numpy', 'pyarrow', 'matplotlib') if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def test_every_command_has_a_help_text() -> None:
    for name in ("train", "models", "predict"):
        result = CliRunner().invoke(app, [name, "--help"])
        assert result.exit_code == 0
        assert "Usage" in result.output


def test_ctrl_c_leaves_a_message_and_no_run_folder(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nfgnn.run_progress as progress

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(progress.RunDisplay, "epoch", interrupt)
    status, _, err = call("train", "karate", "--protocol", "stratified", *QUICK, "--out", "run")
    assert status == 130
    assert "--resume" in err
    assert not (tmp_path / "run").exists()


def test_texas_and_cora_reach_what_is_promised(data_root: Path, tmp_path: Path) -> None:
    texas = [
        nfgnn("train", "texas", "--root", str(data_root), "--runs", "5", "--json", cwd=tmp_path)
        for _ in range(2)
    ]
    first, second = (json.loads(out.stdout) for out in texas)
    assert first["test_accuracy"]["mean"] > 0.88
    assert first["test_accuracy"] == second["test_accuracy"]
    cora = nfgnn(
        "train",
        "cora",
        "--protocol",
        "semi",
        "--root",
        str(data_root),
        "--runs",
        "3",
        "--json",
        cwd=tmp_path,
    )
    assert json.loads(cora.stdout)["test_accuracy"]["mean"] > 0.76
