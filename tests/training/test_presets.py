"""Shipped presets are themselves tested: every table resolves, builds and names known things."""

from importlib.resources import files

import pytest

from nfgnn.data import PROTOCOLS, SCALINGS
from nfgnn.errors import UserError
from nfgnn.nn.models import MODELS
from nfgnn.training import RunConfig, presets
from nfgnn.training.presets import GATE_KINDS, modern_tables, preset, preset_tables

FILES = sorted(
    file.name
    for file in files("nfgnn.training.presets").iterdir()
    if file.name.endswith(".toml") and file.name != "modern.toml"
)


def tables(file: str):
    content = preset_tables(file.removesuffix(".toml"))
    kinds = ("paper", *GATE_KINDS)
    for kind, part in (("best", content), *((kind, content.get(kind, {})) for kind in kinds)):
        for protocol, by_dataset in part.items():
            if protocol not in ("default", *kinds):
                yield from ((kind, protocol, dataset) for dataset in by_dataset)


@pytest.mark.parametrize("file", FILES)
def test_every_table_resolves_and_builds(file: str) -> None:
    from nfgnn.data import REGISTRY

    (name,) = (name for name in MODELS if f"{name.lower()}.toml" == file)
    known = {*REGISTRY, "mixed", "karate"}
    for kind, protocol, dataset in tables(file):
        assert protocol in PROTOCOLS
        assert dataset in known, f"{file}: {dataset}"
        config = RunConfig.resolve(name, {}, dataset, protocol, kind)
        assert config.training.features in SCALINGS
        assert config.hyper == RunConfig.from_dict(config.to_dict()).hyper
        config.build(20, 3, 10)


def test_tables_override_in_order() -> None:
    assert preset("NFGNN", "citeseer", "full")["K"] == 5
    assert preset("nfgnn", "citeseer", "geom-gcn")["K"] == 5  # protocols without tables use full's
    assert preset("NFGNN", "citeseer", "full", "paper")["K"] == 10
    assert preset("NFGNN", "texas", "full", "none") == {}
    assert preset("NFGNN", "my own graph", "full") == preset("NFGNN", None, None)
    assert preset("Toy", "texas", "full") == {}
    assert preset("PolyGNN", "citeseer", "full", "paper") == preset(
        "NFGNN", "citeseer", "full", "paper"
    )
    assert preset("NFGNN", "citeseer", "full", "agreement")["gate"] == "agreement"
    assert preset("NFGNN", "cora", "inductive") == preset("NFGNN", "cora", "semi")
    assert preset("NFGNN", "squirrel", "semi")["link"] == "row"
    assert "link" not in preset(
        "NFGNN", "squirrel", "inductive"
    )  # its nodes must not be known one by one


def test_every_winner_of_the_modern_search_resolves_and_builds() -> None:
    from nfgnn.data import REGISTRY

    for model, by_protocol in modern_tables().items():
        for protocol, by_dataset in by_protocol.items():
            assert protocol in PROTOCOLS
            for dataset in by_dataset:
                assert dataset in REGISTRY
                config = RunConfig.resolve(model, {}, dataset, protocol, "modern")
                assert config.training.select == "metric"
                config.build(20, 3, 10)


def test_a_winner_counts_where_the_model_has_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {
        "GCN": {
            "public": {"minesweeper": {"lr": 0.5}},
            "full": {"cora": {"lr": 0.25}, "mixed": {"lr": 0.125}},
        }
    }
    monkeypatch.setattr(presets, "modern_tables", lambda: tables)
    assert preset("GCN", "minesweeper", "public") == {"lr": 0.5}
    assert preset("GCN", "minesweeper", "public", "modern") == {"lr": 0.5}
    assert preset("GCN", "minesweeper", "public", "none") == {}
    assert preset("GCN", "minesweeper", "stratified").get("lr") != 0.5
    assert preset("GCN", "cora", "full")["features"] == "row"
    assert preset("GCN", "cora", "full", "modern") == {"lr": 0.25}
    assert preset("GCN", "citeseer", "full", "modern") == preset("GCN", "citeseer", "full")


def test_settings_override_presets() -> None:
    config = RunConfig.resolve("nfgnn", {"K": 7, "lr": 1}, "citeseer", "full")
    assert (config.model, config.hyper["K"], config.hyper["basis"]) == ("NFGNN", 7, "monomial")
    assert config.training.lr == 1.0
    assert isinstance(config.training.lr, float)


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(UserError, match="choose one of best, paper, none"):
        preset("NFGNN", "texas", "full", "good")


def test_a_presets_gate_gives_way_to_a_rank_that_it_cannot_have() -> None:
    assert preset("NFGNN", "mixed", "full")["gate"] == "agreement"
    assert RunConfig.resolve("NFGNN", {"rank": 1}, "mixed", "full").hyper["gate"] == "term"
    assert RunConfig.resolve("NFGNN", {"rank": 2}, "mixed", "full").hyper["gate"] == "agreement"
    with pytest.raises(UserError, match="needs a rank of 2 or more"):
        RunConfig.resolve("NFGNN", {"rank": 1, "gate": "agreement"}, "mixed", "full").build(20, 3)
