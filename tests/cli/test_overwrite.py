"""What every command does when its output exists: leave, refuse, or replace with --overwrite."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.data import export_graph
from nfgnn.errors import UserError
from nfgnn.paper import write_figures
from nfgnn.progress import Progress
from nfgnn.training import Experiment, Graph, InProcess, RunConfig, run_experiment

Call = Callable[..., tuple[int, str, str]]
QUICK = ("--protocol", "stratified", "--runs", "1", "--set", "epochs=3")
TUNE = ("--protocol", "stratified", "--model", "MLP", "--seeds", "0", "--set", "epochs=3")
FULL = ("reproduce", "full", "--models", "MLP", "--runs", "1")
COMMANDS = {
    "train": (
        ["train", "karate", *QUICK, "--set", "K=2", "--out", "out/run"],
        ["train", "karate", *QUICK, "--set", "K=3", "--out", "out/run"],
        "out/run",
    ),
    "precompute": (
        ["precompute", "karate", "--K", "2", "--out", "out/store"],
        ["precompute", "karate", "--K", "3", "--out", "out/store"],
        "out/store",
    ),
    "predict": (
        ["predict", "run", "karate", "-o", "out/p.csv"],
        ["predict", "other", "karate", "-o", "out/p.csv"],
        "out/p.csv",
    ),
    "predict to Parquet": (
        ["predict", "run", "karate", "-o", "out/p.parquet"],
        ["predict", "other", "karate", "-o", "out/p.parquet"],
        "out/p.parquet",
    ),
    "explore": (
        ["explore", "run", "-o", "out/e.html"],
        ["explore", "other", "-o", "out/e.html"],
        "out/e.html",
    ),
    "analyze": (
        ["analyze", "karate", "--no-models", "--out", "out/analysis"],
        ["analyze", "graph", "--no-models", "--out", "out/analysis"],
        "out/analysis",
    ),
    "tune": (
        ["tune", "karate", *TUNE, "--trials", "1", "--out", "out/best.toml"],
        ["tune", "karate", *TUNE, "--trials", "2", "--out", "out/best.toml"],
        "out/best.toml",
    ),
    "reproduce": (
        [*FULL, "--datasets", "graph", "--out", "out"],
        [*FULL, "--datasets", "sub/graph", "--out", "out"],
        "out/full-graph-mlp-1runs.md",
    ),
}


def content(path: Path) -> dict[str, str]:
    """Return the hash of every file at or below a path, but for those with times."""
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    found = {}
    for file in files:
        if file.is_file():
            found[str(file)] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two runs and a graph of the user's own."""
    folder = tmp_path_factory.mktemp("prepared")
    graph = Graph.of(load_dataset("karate"))
    for name, K in (("run", 2), ("other", 3)):
        config = RunConfig.resolve("NFGNN", {"K": K, "epochs": 3}, None, None, "none")
        source = {"dataset": "karate", "columns": []}
        experiment = Experiment(graph, "stratified", [0], config, "cpu", source)
        run_experiment(experiment, folder / name, InProcess(), Progress(quiet=True))
    export_graph(load_dataset("mixed", num_nodes=60), folder / "graph")
    export_graph(load_dataset("mixed", num_nodes=70), folder / "sub" / "graph")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_existing_outputs(name: str, call: Call, prepared: Path, tmp_path: Path) -> None:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    first, second, place = COMMANDS[name]
    out = tmp_path / place
    out.parent.mkdir(parents=True)
    status, _, err = call(*first)
    assert status == 0, err
    before = content(out)
    # The same command again leaves the output.
    status, _, err = call(*first)
    assert status == 0, err
    assert content(out) == before
    # Other content of ours.
    status, _, err = call(*second)
    assert status == 2
    assert "with different content" in err
    assert "--overwrite" in err
    assert content(out) == before
    status, _, err = call(*second, "--overwrite")
    assert status == 0, err
    after = content(out)
    assert after != before
    assert not [path for path in tmp_path.rglob(".*") if path.name.endswith(".partial")]
    # Files of others, also with --overwrite.
    foreign = out
    if out.is_dir():
        foreign = out / "thesis.txt"
    foreign.write_text("mine")
    before = content(out)
    for command in ([*first], [*first, "--overwrite"]):
        status, _, err = call(*command)
        assert status == 2, err
        assert "nfgnn" in err
        assert content(out) == before


def test_a_finished_run_is_trained_again_only_with_overwrite(call: Call, tmp_path: Path) -> None:
    train = ["train", "karate", *QUICK, "--set", "K=2", "--out", "run", "--json"]
    first = json.loads(call(*train)[1])
    status, out, err = call(*train)
    assert status == 0
    assert json.loads(out) == first
    assert "run already contains these runs: use --overwrite" in err
    status, out, _ = call(*train, "--overwrite")
    again = json.loads(out)
    assert again["seconds"] != first["seconds"]
    assert again["test_accuracy"] == first["test_accuracy"]


def test_a_damaged_finished_run_is_named_and_trained_again(call: Call, tmp_path: Path) -> None:
    train = ["train", "karate", *QUICK, "--set", "K=2", "--out", "run"]
    assert call(*train)[0] == 0
    before = content(tmp_path / "run" / "seed-0")
    weights = tmp_path / "run" / "seed-0" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    status, _, err = call(*train)
    assert status == 2
    assert "weights.safetensors: is damaged" in err
    assert "--overwrite" in err
    assert call(*train, "--overwrite")[0] == 0
    after = content(tmp_path / "run" / "seed-0")
    assert after[str(weights)] == before[str(weights)]


def test_unfinished_runs_of_other_settings_are_kept(call: Call, tmp_path: Path) -> None:
    train = ["train", "karate", *QUICK, "--out", "run", "--set"]
    assert call(*train, "K=2")[0] == 0
    staging = (tmp_path / "run").rename(tmp_path / ".run.partial")
    before = content(staging)
    status, _, err = call(*train, "K=3")
    assert status == 2
    assert "unfinished runs with other settings" in err
    assert "--overwrite" in err
    assert content(staging) == before
    assert call(*train, "K=3", "--overwrite")[0] == 0
    assert not staging.exists()


def test_unfinished_and_damaged_stores_are_overwritten(call: Call, tmp_path: Path) -> None:
    store = tmp_path / "store"
    precompute = ["precompute", "karate", "--out", "store", "--K"]
    assert call(*precompute, "2")[0] == 0
    expected = content(store)
    manifest = store / "manifest.json"
    manifest.write_text("{")
    assert call(*precompute, "2")[0] == 2
    assert call(*precompute, "2", "--overwrite")[0] == 0
    assert content(store) == expected
    # A store that another command has completed beside this one, but not published.
    shutil.copytree(store, tmp_path / ".store.partial")
    assert call(*precompute, "3", "--overwrite")[0] == 0
    assert json.loads(manifest.read_text())["K"] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_templates_are_never_replaced(call: Call, tmp_path: Path) -> None:
    assert call("datasets", "--template", "mine")[0] == 0
    (tmp_path / "mine" / "nodes.csv").write_text("mine")
    status, _, err = call("datasets", "--template", "mine")
    assert status == 2
    assert "choose a new one" in err
    assert (tmp_path / "mine" / "nodes.csv").read_text() == "mine"


def test_a_saved_model_is_replaced_only_with_overwrite(tmp_path: Path) -> None:
    data = split(load_dataset("karate"), "stratified", 0)
    models = [NodeClassifier("MLP", seed=seed, epochs=3).fit(data) for seed in (0, 1)]
    for _ in range(2):
        models[0].save(tmp_path / "model")
    with pytest.raises(UserError, match=r"model with different content.*overwrite=True"):
        models[1].save(tmp_path / "model")
    assert NodeClassifier.load(tmp_path / "model").seed == 0
    models[1].save(tmp_path / "model", overwrite=True)
    assert NodeClassifier.load(tmp_path / "model").seed == 1
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_exported_graphs_are_replaced_only_with_overwrite(tmp_path: Path) -> None:
    for file_format, path in (("csv", "g"), ("parquet", "h"), ("npz", "graph.npz")):
        out = tmp_path / path
        for _ in range(2):
            export_graph(load_dataset("karate"), out, file_format)
        before = content(out)
        other = load_dataset("mixed", num_nodes=60)
        with pytest.raises(UserError, match="is a graph with different content"):
            export_graph(other, out, file_format)
        assert content(out) == before
        export_graph(other, out, file_format, overwrite=True)
        assert content(out) != before


def test_figures_are_replaced_only_with_overwrite(tmp_path: Path) -> None:
    figures = tmp_path / "figures"
    write_figures(["degrees"], ["karate"], None, tmp_path)
    before = content(figures)
    write_figures(["degrees"], ["karate"], None, tmp_path)
    assert content(figures) == before
    with pytest.raises(UserError, match="is a figure with different content"):
        write_figures(["degrees"], ["mixed"], None, tmp_path)
    assert content(figures) == before
    write_figures(["degrees"], ["mixed"], None, tmp_path, overwrite=True)
    assert content(figures) != before
    (figures / "degrees.json").write_text("mine")
    with pytest.raises(UserError, match="is not a figure of nfgnn"):
        write_figures(["degrees"], ["mixed"], None, tmp_path, overwrite=True)
