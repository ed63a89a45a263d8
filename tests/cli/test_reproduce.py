"""``nfgnn reproduce``: its JSON."""

import json
from pathlib import Path

TABLE = ("reproduce", "full", "--datasets", "karate", "--models", "MLP", "--runs", "1")


def test_json_lists_the_written_files_and_nothing_else_is_printed(call, tmp_path: Path) -> None:
    status, out, _ = call(*TABLE, "--out", "results", "--json")
    result = json.loads(out)
    assert status == 0
    assert (result["out"], result["figures"], result["notes"]) == ("results", [], [])
    (item,) = result["items"]
    assert item["item"] == "full"
    assert item["files"]
    assert all((tmp_path / file).is_file() for file in item["files"])
