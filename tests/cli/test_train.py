"""``nfgnn train``: its JSON, its table, and the accuracy on real graphs."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nfgnn.auto import load_portfolio
from nfgnn.training import RunConfig

QUICK = ("--protocol", "stratified", "--runs", "2", "--set", "epochs=15", "--set", "K=3")


@pytest.mark.figures
def test_json_has_the_documented_keys_and_is_reproducible(call, tmp_path: Path) -> None:
    command = ("train", "karate", *QUICK, "--json")
    status, out, _ = call(*command)
    result = json.loads(out)
    assert status == 0
    assert set(result) >= {
        "dataset",
        "model",
        "protocol",
        "seeds",
        "test_accuracy",
        "val_accuracy",
        "epochs",
        "seconds",
        "epoch_ms",
        "device",
        "config",
        "run",
    }
    assert set(result["test_accuracy"]) == {"mean", "ci95", "std", "values"}
    assert all(0 <= value <= 1 for value in result["test_accuracy"]["values"])
    assert (result["dataset"], result["model"], result["seeds"]) == ("karate", "NFGNN", [0, 1])
    assert (result["config"]["K"], result["config"]["epochs"]) == (3, 15)
    again = json.loads(call(*command)[1])
    assert again["test_accuracy"] == result["test_accuracy"]
    assert (tmp_path / result["run"] / "run.png").read_bytes().startswith(b"\x89PNG")


def test_a_graph_without_preset_is_trained_with_the_first_entry_of_the_portfolio(
    call, tmp_path: Path
) -> None:
    quick = ("--runs", "1", "--set", "epochs=2", "--protocol", "stratified", "--json")
    first = load_portfolio()[0].config

    def train(*options: str) -> tuple[dict[str, object], str]:
        status, out, err = call("train", *options, *quick)
        assert status == 0
        return json.loads(out)["config"], " ".join(err.split())

    config, err = train("karate")
    assert (
        config
        == replace(first, training=replace(first.training, epochs=2, select="loss")).to_dict()
    )
    assert f"karate has no preset: training {first.model}" in err
    assert "`nfgnn auto karate` to compare models" in err
    # The model and the preset of the user, the preset of a graph, and settings of NFGNN alone.
    config, err = train("karate", "--model", "NFGNN")
    assert (
        config == RunConfig.resolve("NFGNN", {"epochs": 2, "select": "loss"}, None, None).to_dict()
    )
    assert "nfgnn auto" not in err
    config, err = train("karate", "--preset", "none")
    assert (config["model"], "nfgnn auto" in err) == ("NFGNN", False)
    config, err = train("mixed")
    assert (config["model"], "nfgnn auto" in err) == ("NFGNN", False)
    config, err = train("karate", "--set", "gate=agreement", "--set", "rank=3")
    assert (config["model"], "nfgnn auto" in err) == ("NFGNN", True)


def test_the_hint_repeats_the_options_that_read_the_graph(call, tmp_path: Path) -> None:
    folder = tmp_path / "my people"
    call("datasets", "--template", str(folder))
    nodes = (folder / "nodes.csv").read_text()
    (folder / "nodes.csv").write_text(nodes.replace("label", "a kind", 1))
    options = ("my people", "--column", "label=a kind", "--root", "raw")
    (tmp_path / "raw").mkdir()
    status, _, err = call("train", *options, "--runs", "1", "--set", "epochs=2", "--json")
    assert status == 0, err
    assert f"run `{shlex.join(('nfgnn', 'auto', *options))}` to compare" in " ".join(err.split())


def test_names_are_accepted_in_any_case(call) -> None:
    _, out, _ = call("train", "Karate", "--model", "nfgnn", *QUICK, "--preset", "BEST", "--json")
    assert json.loads(out)["model"] == "NFGNN"


def test_table_and_figure(call) -> None:
    status, out, err = call("train", "karate", *QUICK, "--out", "here")
    assert status == 0
    assert "mean" in out
    assert "±" in out
    assert "here/run.png" in out
    assert "seed 1: test acc" in err


def test_dead_runs_are_reported(call, tmp_path: Path) -> None:
    settings = ("lr=0", "epochs=120", "restarts=0", "features=raw")
    options = [part for setting in settings for part in ("--set", setting)]
    command = ("train", "mixed", "--model", "MLP", "--runs", "2", *options, "--out", "dead")
    status, out, err = call(*command)
    assert status == 0
    assert "2 of 2 runs never rose above chance (seeds 0, 1)." in " ".join(out.split())
    assert err.count("never rose above chance") == 2
    summary = json.loads((tmp_path / "dead" / "summary.json").read_text())
    assert summary["dead_seeds"] == [0, 1]
    assert not summary.keys() & {"without_dead", "restarted_seeds"}
    metrics = json.loads((tmp_path / "dead" / "seed-1" / "metrics.json").read_text())
    assert metrics["dead"] == 1


def train(*arguments: str, folder: Path) -> dict:
    command = [sys.executable, "-m", "nfgnn", "train", *arguments, "--json"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return json.loads(result.stdout)


def test_texas_and_cora_reach_the_documented_accuracy(
    call, data_root: Path, tmp_path: Path
) -> None:
    root = ("--root", str(data_root))
    texas = json.loads(call("train", "texas", *root, "--runs", "3", "--json")[1])
    assert texas["test_accuracy"]["mean"] > 0.88
    # The same numbers in another process.
    again = train("texas", *root, "--runs", "1", folder=tmp_path)
    assert texas["test_accuracy"]["values"][:1] == again["test_accuracy"]["values"]
    command = ("train", "cora", "--protocol", "semi", *root, "--runs", "2", "--json")
    cora = json.loads(call(*command)[1])
    # 0.786 on average over 50 splits, with several points between splits; an MLP has 0.51.
    assert cora["test_accuracy"]["mean"] > 0.7


def test_metric_selection_and_class_weight_are_options(call) -> None:
    command = ("train", "karate", *QUICK, "--json")
    status, out, _ = call(*command, "--metric", "MACRO_F1", "--class-weight", "balanced")
    assert status == 0
    result = json.loads(out)
    assert result["config"]["metric"] == "macro_f1"
    assert result["config"]["select"] == "metric"
    assert result["config"]["class_weight"] == "balanced"
    status, out, _ = call(*command, "--metric", "accuracy", "--select", "loss")
    assert status == 0
    assert not {"metric", "select", "class_weight"} & json.loads(out)["config"].keys()
    for option, value in (("--metric", "roc"), ("--select", "best"), ("--class-weight", "equal")):
        status, _, err = call(*command, option, value)
        assert status == 2
        assert f"'{value}'" in err


def test_no_dead_run_of_citeseer_goes_unreported(call, data_root: Path) -> None:
    # The preset before it had a warm-up. Seed 1000 never left the start then.
    command = ("train", "citeseer", "--model", "GPRGNN", "--protocol", "semi", "--json")
    command += ("--root", str(data_root), "--device", "cpu", "--seed", "1000", "--runs", "1")
    old = json.loads(call(*command, "--set", "restarts=0", "--set", "warmup_epochs=0")[1])
    low = [s for s, value in zip(old["seeds"], old["test_accuracy"]["values"]) if value < 0.5]
    assert old.get("dead_seeds", []) == low
    preset = json.loads(call(*command)[1])
    assert "dead_seeds" not in preset
    assert preset["test_accuracy"]["mean"] > 0.6
