"""Ordinary mistakes, failing disks and defects of the program: one message, never a traceback."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from rich.console import Console

import nfgnn.cli.models
from nfgnn import load_dataset
from nfgnn.data import write_template
from nfgnn.errors import UserError
from nfgnn.files import expand_user, safe_name
from nfgnn.training import Graph, RunConfig
from nfgnn.training.experiment import Experiment

QUICK = ("--protocol", "stratified", "--runs", "1", "--set", "epochs=3", "--set", "K=2")
LONG = "a" * 300


def one_line(err: str) -> str:
    """Return the message of a refused command."""
    (line,) = (line for line in err.splitlines() if line.startswith("nfgnn: "))
    assert "Traceback" not in err
    return line


def no_space(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fail(*_: object, **__: object) -> NoReturn:
    raise KeyError("first line\nsecond line")


# The last handler


def test_an_unexpected_error_is_one_line_and_a_crash_report(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nfgnn.cli.models, "_print_models", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    status, out, err = call("models")
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    (report,) = tmp_path.glob("nfgnn-crash-*.txt")
    assert str(report) in one_line(err)
    text = report.read_text()
    assert "command: nfgnn models" in text
    assert "Traceback (most recent call last)" in text
    assert "second line" in text
    for package in ("nfgnn", "torch", "numpy", "python"):
        assert f"\n{package}: " in text
    assert report.stat().st_mode & 0o077 == 0


def test_a_crash_report_that_cannot_be_written(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nfgnn.cli.models, "_print_models", fail)
    monkeypatch.setattr("tempfile.mkstemp", no_space)
    status, _, err = call("models")
    assert status == 1
    assert "NFGNN_DEBUG=1" in one_line(err)


def test_debug_raises(call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nfgnn.cli.models, "_print_models", fail)
    monkeypatch.setenv("NFGNN_DEBUG", "1")
    with pytest.raises(KeyError):
        call("models")
    with pytest.raises(UserError):
        call("models", "NFGN")


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "no space is left"),
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "is read-only"),
        (errno.ENAMETOOLONG, "the name is too long"),
    ],
)
def test_errors_of_the_system_name_the_file(
    call, monkeypatch: pytest.MonkeyPatch, number: int, message: str
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(number, os.strerror(number), "some/file")

    monkeypatch.setattr(nfgnn.cli.models, "_print_models", refuse)
    status, _, err = call("models")
    assert status == 2
    assert "cannot read or write some/file: " in one_line(err)
    assert message in err


def test_a_lack_of_memory_is_no_crash(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise MemoryError

    monkeypatch.setattr(nfgnn.cli.models, "_print_models", refuse)
    status, _, err = call("models")
    assert status == 2
    assert "not enough memory" in one_line(err)


def test_interruption_has_status_130(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(nfgnn.cli.models, "_print_models", interrupt)
    assert call("models")[0] == 130


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_output_that_cannot_be_written(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nfgnn", "--version"]
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert result.returncode == 2
    assert "standard output: no space is left" in one_line(result.stderr)
    closed = subprocess.run(
        f"{sys.executable} -m nfgnn --version >&-",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (closed.returncode, closed.stderr) == (0, "")


# Full disks


def test_a_full_disk_while_training(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors import SafetensorError

    def refuse(*_: object) -> NoReturn:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    with monkeypatch.context() as patch:
        patch.setattr("nfgnn.training.tensor_files.save_file", refuse)
        status, _, err = call("train", "karate", *QUICK, "--out", "run")
    assert status == 2
    assert "cannot read or write run: " in one_line(err)
    assert "No space left" in err
    with monkeypatch.context() as patch:
        patch.setattr("numpy.save", no_space)
        status, _, err = call("train", "karate", *QUICK, "--out", "run")
    assert status == 2
    assert "cannot read or write run: no space is left" in one_line(err)
    assert not (tmp_path / "run").exists()
    assert not list(tmp_path.glob(".run.partial/*seed*"))


@pytest.mark.figures
def test_a_full_disk_while_the_picture_is_drawn(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nfgnn.explain.figure_style.atomic_write", no_space)
    status, _, err = call("train", "karate", *QUICK, "--out", "run")
    assert status == 2
    assert "cannot read or write run/run.png: no space is left" in one_line(err)
    assert (tmp_path / "run" / "summary.json").exists()
    assert not (tmp_path / "run" / "run.png").exists()


def test_a_full_disk_while_predicting_and_exploring(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("train", "karate", *QUICK, "--out", "run")[0] == 0
    before = sorted(tmp_path.rglob("*"))
    for name in ("csv.write_csv", "parquet.write_table"):
        monkeypatch.setattr(f"pyarrow.{name}", no_space)
    for file in ("p.csv", "p.parquet"):
        status, _, err = call("predict", "run", "karate", "-o", file)
        assert status == 2
        assert f"cannot read or write {file}: no space is left" in one_line(err)
    monkeypatch.setattr(Path, "write_bytes", no_space)
    status, _, err = call("explore", "run", "-o", "e.html")
    assert status == 2
    assert "cannot read or write e.html: no space is left" in one_line(err)
    assert sorted(tmp_path.rglob("*")) == before


# Ordinary mistakes


def test_a_file_in_place_of_the_output_folder(call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for command in (["train", "karate", *QUICK], ["precompute", "karate"], ["analyze", "karate"]):
        status, _, err = call(*command, "--out", "file")
        assert status == 2
        assert "file is a file" in one_line(err)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_model_of_the_graph_is_not_applied_to_a_store(call) -> None:
    assert call("train", "karate", *QUICK, "--out", "run")[0] == 0
    assert call("precompute", "karate", "--out", "store", "--K", "2", "--rows", "all")[0] == 0
    status, _, err = call("predict", "run", "store", "-o", "p.csv")
    assert status == 2
    assert "NFGNN needs the graph: pass the graph itself" in one_line(err)


def test_damaged_run_folders(call, tmp_path: Path) -> None:
    assert call("train", "karate", *QUICK, "--out", "run")[0] == 0
    shutil.copytree("run", "no-weights")
    Path("no-weights/seed-0/weights.safetensors").unlink()
    status, _, err = call("predict", "no-weights", "karate", "-o", "p.csv")
    assert status == 2
    assert "weights.safetensors" in one_line(err)
    shutil.copytree("run", "large-K")
    file = Path("large-K/seed-0/classifier.json")
    description = json.loads(file.read_text())
    description["config"]["K"] = 10**6
    file.write_text(json.dumps(description))
    status, _, err = call("predict", "large-K", "karate", "-o", "p.csv")
    assert status == 2
    assert one_line(err)


def test_a_graph_with_an_unknown_metric() -> None:
    data = load_dataset("karate")
    data.metric = "roc-auc"
    config = RunConfig.resolve("MLP", {"epochs": 2}, None, None, "none")
    with pytest.raises(UserError, match=r"unknown metric 'roc-auc'.*did you mean roc_auc"):
        Experiment(Graph.of(data), "stratified", [0], config).check()


@pytest.mark.parametrize(
    "command",
    [
        ["train", LONG],
        ["train", "karate", *QUICK, "--out", LONG],
        ["train", "karate", *QUICK, "--out", "a" * 250],
        ["predict", "run", "karate", "-o", f"{LONG}.csv"],
        ["explore", "run", "-o", f"{LONG}.html"],
        ["analyze", "karate", "--out", LONG],
        ["precompute", "karate", "--out", LONG],
    ],
)
def test_names_of_more_than_255_bytes(call, tmp_path: Path, command: list[str]) -> None:
    status, _, err = call(*command)
    assert status == 2
    assert "too long" in one_line(err)
    assert list(tmp_path.iterdir()) == []


def test_names_of_graphs_do_not_leave_the_folder_of_runs() -> None:
    data = load_dataset("karate")
    config = RunConfig.resolve("MLP", {}, None, None, "none")
    for name, expected in (
        ("karate", "karate"),
        ("../../home", ".._.._home"),
        ("ä" * 300, "ä" * 60),
        ("..", "graph"),
        ("a\nb", "a_b"),
    ):
        assert safe_name(name) == expected
        data.name = name
        folder = Experiment(Graph.of(data), "full", [0], config).default_folder()
        assert folder.parent == Path("runs")
        assert folder.name.startswith(f"{expected}-MLP-full-")


@pytest.mark.parametrize(
    "command",
    [
        ["train", "~nouser/x"],
        ["train", "karate", "--root", "~nouser/x"],
        ["datasets", "~nouser/x"],
        ["tune", "~nouser/x"],
        ["predict", "run", "~nouser/x", "-o", "p.csv"],
    ],
)
def test_the_home_folder_of_an_unknown_user(call, command: list[str]) -> None:
    status, _, err = call(*command)
    assert status == 2
    assert "~nouser/x: there is no such user" in one_line(err)


def test_the_home_folder_is_expanded() -> None:
    assert expand_user("~/x") == Path.home() / "x"
    with pytest.raises(UserError, match="no such user"):
        load_dataset("~nouser/x")


@pytest.mark.figures
def test_names_of_folders_are_printed_and_drawn_as_they_are(call, tmp_path: Path) -> None:
    name = r"g$\frac{$ [bold]x]:smile: {0}%s["
    write_template(tmp_path / name)
    folder = f"./{name}"
    status, out, err = call("train", folder, *QUICK)
    assert status == 0, err
    assert f"on {name}" in out
    status, out, err = call("datasets", folder)
    assert status == 0, err
    assert name in out
    status, out, err = call("analyze", folder, "--no-models")
    assert status == 0, err
    assert f"{name}: " in out


@pytest.mark.figures
def test_class_names_that_look_like_markup(call, tmp_path: Path) -> None:
    names = np.array(["[/x]", "[red]"])
    rows = [f"{i},{names[i % 2]},{i % 3},{i % 5}" for i in range(30)]
    graph = tmp_path / "g"
    graph.mkdir()
    (graph / "nodes.csv").write_text("\n".join(["id,label,f0,f1", *rows]) + "\n")
    edges = [f"{i},{(i + 1) % 30}" for i in range(30)]
    (graph / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    for command in (
        ["datasets", "g"],
        ["train", "g", *QUICK, "--out", "[/run]"],
        ["analyze", "g", "--no-models"],
        ["predict", "[/run]", "g", "-o", "[/p].csv"],
        ["explore", "[/run]", "-o", "[/e].html"],
    ):
        status, _, err = call(*command)
        assert status == 0, (command, err)
    assert "[/x]" in (tmp_path / "[/p].csv").read_text()


def test_markup_in_arguments_and_in_the_progress_display(
    call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nfgnn.progress import Progress

    for command in (["[/x]"], ["train", "karate", "--runs", "[/x]"], ["train", "[/x]"]):
        status, _, err = call(*command)
        assert status == 2
        assert "Traceback" not in err
    monkeypatch.setattr(Console, "is_terminal", True)
    with Progress("[/x]") as progress:
        progress.start(1.0, 1)
        progress.advance(1.0, "[/y]")
        progress.say("[/z]")
