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


def test_a_data_set_that_exceeds_the_budget_is_refused_before_it_is_downloaded(
    call, tmp_path: Path
) -> None:
    """ogbn-products: 61,859,140 edges of 32 bytes and 2,449,029 × 100 features of 4 bytes."""
    status, out, err = call("precompute", "ogbn-products", "--out", "store", "--memory", "1GB")
    assert status == 2
    assert out == ""
    assert "ogbn-products: is loaded as a whole and takes about 2.98 GB" in err
    assert not (tmp_path / "store").exists()
