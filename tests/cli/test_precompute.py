"""``nfgnn precompute``: its plan and its JSON."""

import json
from pathlib import Path


def test_json_of_the_plan_and_of_the_store(call, tmp_path: Path) -> None:
    command = ("precompute", "karate", "--out", "store", "--K", "2", "--memory", "2GB", "--json")
    status, out, err = call(*command, "--dry-run")
    assert status == 0
    assert json.loads(out)["plan"]["K"] == 2
    assert "34 nodes" in err
    assert not (tmp_path / "store").exists()
    status, out, _ = call(*command)
    result = json.loads(out)
    assert status == 0
    assert (result["rows"], result["K"], result["basis"]) == (34, 2, "chebyshev")
    assert all(seconds >= 0 for seconds in result["stages"].values())
    assert "computing terms" in result["stages"]
