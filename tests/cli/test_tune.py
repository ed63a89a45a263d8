"""``nfgnn tune``: the table of settings, and its JSON."""

import json
import shlex
import tomllib
from pathlib import Path

QUICK = ("--protocol", "stratified", "--trials", "2", "--seeds", "0,1", "--set", "epochs=5")


def test_table_and_json_have_the_same_settings(call, tmp_path: Path) -> None:
    status, table, _ = call("tune", "karate", "--model", "MLP", *QUICK)
    assert status == 0
    settings = tomllib.loads(table)["full"]["karate"]
    status, out, _ = call(
        "tune", "karate", "--model", "MLP", *QUICK, "--json", "--out", "tables/karate.toml"
    )
    result = json.loads(out)
    assert status == 0
    assert result["settings"] == settings
    assert settings["epochs"] == 5
    assert tomllib.loads(table)["model"] == "MLP"
    assert (result["model"], result["seeds"], result["trials"]) == ("MLP", [0, 1], 2)
    assert 0 <= result["preset_val_accuracy"] <= result["val_accuracy"] <= 1
    assert result["table"] == table == (tmp_path / "tables/karate.toml").read_text()


def test_the_metric_of_the_search_is_an_option(call) -> None:
    command = ("tune", "karate", "--model", "MLP", *QUICK, "--metric", "log_loss", "--json")
    status, out, _ = call(*command, "--class-weight", "balanced")
    result = json.loads(out)
    assert status == 0
    assert result["metric"] == "log_loss"
    assert 0 <= result["val_log_loss"] <= result["preset_val_log_loss"]
    assert result["settings"]["class_weight"] == "balanced"
    assert result["settings"]["select"] == "metric"
    assert "--metric log_loss --class-weight balanced" in result["table"]


def test_a_tuned_preset_trains_exactly_as_the_settings_do(call, tmp_path: Path) -> None:
    """The command that `tune` prints gives the weights of the same settings, typed by hand."""
    graph = "my graph"
    call("datasets", "--template", graph)
    search = ("tune", graph, "--model", "NFGNN", *QUICK, "--json", "--out", "my preset.toml")
    status, out, _ = call(*search)
    assert status == 0
    tuned = json.loads(out)
    command = shlex.split(tuned["train"])
    assert command[:3] == ["nfgnn", "train", graph]
    quick = ("--runs", "1", "--json")
    status, out, _ = call(*command[1:], *quick, "--out", "from-file")
    assert status == 0
    assert json.loads(out)["model"] == "NFGNN"
    typed = []
    for key, value in tuned["settings"].items():
        if value is not None:
            typed += ["--set", f"{key}={json.dumps(value)}"]
    plain = ("train", graph, "--protocol", "stratified", "--preset", "none")
    assert call(*plain, *typed, *quick, "--out", "typed")[0] == 0
    runs = (tmp_path / "from-file", tmp_path / "typed")
    weights = [next(run.rglob("weights.safetensors")).read_bytes() for run in runs]
    assert weights[0] == weights[1]
    configs = [json.loads((run / "summary.json").read_text())["config"] for run in runs]
    assert configs[0] == configs[1]


def test_without_json_the_command_is_printed(call) -> None:
    search = ("tune", "karate", "--model", "MLP", *QUICK, "--out", "karate.toml")
    train = "nfgnn train karate --protocol stratified --preset karate.toml"
    assert call(*search)[:2] == (0, f"written: karate.toml\ntrain with it: {train}\n")


def test_a_preset_file_adds_a_row_to_a_table(call, tmp_path: Path) -> None:
    (tmp_path / "wide.toml").write_text('model = "MLP"\nhidden_channels = 128\nepochs = 5\n')
    table = ("reproduce", "full", "--datasets", "karate", "--models", "MLP", "--runs", "1")
    status, out, _ = call(*table, "--preset", "wide.toml", "--out", "results")
    assert status == 0
    assert "| MLP (wide.toml) | " in out
    assert "| MLP | " in out


def test_the_committed_search_of_presets_is_complete(call) -> None:
    results = Path(__file__).parents[2] / "results" / "search.parquet"
    # One cell; tests/paper/test_preset_search.py has all of them.
    command = ("tune", "--presets", "--missing", "--cells", "texas:full", "--results", str(results))
    assert call(*command) == (0, "nothing is missing\n", "")
    status, out, _ = call(*command, "--json")
    assert status == 0
    assert json.loads(out) == {"results": str(results), "report": []}
