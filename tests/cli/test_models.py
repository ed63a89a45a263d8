"""``nfgnn models``: the list of models, and the settings of one."""

import json


def test_the_list(call) -> None:
    status, out, _ = call("models")
    assert status == 0
    assert "NFGNN" in out
    rows = json.loads(call("models", "--json")[1])["models"]
    assert {"NFGNN", "PolyGNN", "MLP"} <= {row["name"] for row in rows}


def test_one_model(call) -> None:
    card = json.loads(call("models", "nfgnn", "--json")[1])
    assert card["settings"]["K"] == 10
    assert "K" in call("models", "NFGNN")[1]
    assert "num_nodes" not in card["settings"]
    assert set(card["meanings"]) == set(card["settings"])


def test_defaults_are_printed_as_set_takes_them(call) -> None:
    out = call("models", "NFNet")[1]
    assert "False" not in out
    assert out.count(" false ") == 2  # self_loops and recompute
