"""``nfgnn tune``: the table of settings, and its JSON."""

import json
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
    assert (result["model"], result["seeds"], result["trials"]) == ("MLP", [0, 1], 2)
    assert 0 <= result["preset_val_accuracy"] <= result["val_accuracy"] <= 1
    assert result["table"] == table == (tmp_path / "tables/karate.toml").read_text()


def test_the_committed_search_of_presets_is_complete(call) -> None:
    results = Path(__file__).parents[2] / "results" / "search.parquet"
    command = ("tune", "--presets", "--missing", "--results", str(results))
    assert call(*command) == (0, "nothing is missing\n", "")
    status, out, _ = call(*command, "--json")
    assert status == 0
    assert json.loads(out) == {"results": str(results), "report": []}
