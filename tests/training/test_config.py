"""Settings have a type and a range, whatever their source."""

import inspect
import json
import math
from pathlib import Path
from typing import Any

import pytest

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.checksums import write_checksums
from nfgnn.errors import UserError
from nfgnn.nn import MLP, MODELS, NodeModel
from nfgnn.nn.models.registry import ModelEntry
from nfgnn.training import SETTINGS, RunConfig, TrainingConfig, check_setting
from nfgnn.training.presets import GATE_KINDS, KINDS, preset_tables
from nfgnn.training.search_spaces import search_space

INVALID: list[tuple[str, Any]] = [
    ("lr", -1),
    ("lr", math.inf),
    ("weight_decay", -0.1),
    ("filter_lr", math.nan),
    ("dropout", -1),
    ("dropout", 1.5),
    ("dropout", 1),
    ("filter_dropout", 1.0),
    ("hidden_channels", 0),
    ("hidden_channels", 10**9),
    ("num_layers", -1),
    ("num_layers", 0),
    ("patience", -1),
    ("patience", 0),
    ("epochs", 0),
    ("epochs", 2.5),
    ("batch_size", -1),
    ("partitions", -1),
    ("partitions_per_batch", 0),
    ("label_smoothing", math.nan),
    ("label_smoothing", 1),
    ("K", math.inf),
    ("K", math.nan),
    ("K", -1),
    ("K", 10**6),
    ("K", 10**400),
    ("K", True),
    ("K", "ten"),
    ("rank", 0),
    ("rank", "two"),
    ("basis", [1]),
    ("basis", {}),
    ("basis", None),
    ("gate", 1),
    ("activation", [1]),
    ("init", 0.5),
    ("self_loops", 1),
    ("lambda_max", math.nan),
    ("lambda_max", 0),
    ("lambda_max", -2.0),
    ("lambda_max", "guess"),
    ("alpha", math.nan),
    ("alpha", 1.1),
    ("features", "l2"),
]


def saved_settings(**settings: Any) -> dict[str, Any]:
    return {**RunConfig.resolve("NFGNN", {}, None, None, "none").to_dict(), **settings}


@pytest.mark.parametrize(("name", "value"), INVALID)
def test_all_sources_refuse_the_same_values_with_the_same_message(
    name: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = []
    data = split(load_dataset("karate"), "stratified", 0)
    with pytest.raises(UserError, match=f"^{name} = .* is not valid: it takes ") as error:
        NodeClassifier("NFGNN", **{name: value}).fit(data)
    messages.append(str(error.value))
    with pytest.raises(UserError) as error:
        RunConfig.from_dict(saved_settings(**{name: value}))
    messages.append(str(error.value))
    monkeypatch.setattr("nfgnn.training.config.preset", lambda *_: {name: value})
    with pytest.raises(UserError) as error:
        RunConfig.resolve("NFGNN", {}, "karate", "full")
    messages.append(str(error.value))
    if name in vars(TrainingConfig()):
        with pytest.raises(UserError) as error:
            TrainingConfig(**{name: value})
        messages.append(str(error.value))
    assert len(set(messages)) == 1


def test_messages_name_the_range() -> None:
    for name, value, expected in (
        ("dropout", 1.5, "dropout = 1.5 is not valid: it takes a number from 0 to 1 (1 excluded)"),
        ("lr", -1, "lr = -1 is not valid: it takes a number of at least 0"),
        ("rank", 0, "rank = 0 is not valid: it takes a whole number from 1 to 1,000"),
        ("self_loops", 1, "self_loops = 1 is not valid: it takes true or false"),
        ("basis", [1], "basis = [1] is not valid: it takes a name like 'chebyshev'"),
        (
            "features",
            "l2",
            "features = 'l2' is not valid: it takes one of auto, row, standard, raw",
        ),
        (
            "lambda_max",
            0,
            "lambda_max = 0 is not valid: it takes a number from 1e-06 to 1,000,000 or 'estimate'",
        ),
    ):
        with pytest.raises(UserError) as error:
            RunConfig.resolve("NFGNN", {name: value}, None, None, "none")
        assert str(error.value) == expected


def test_values_take_their_declared_type() -> None:
    config = RunConfig.resolve("NFGNN", {"K": 4.0, "alpha": 1, "lambda_max": 2}, None, None, "none")
    for name, expected in (("K", 4), ("alpha", 1.0), ("lambda_max", 2.0)):
        assert config.hyper[name] == expected
        assert type(config.hyper[name]) is type(expected)
    estimated = RunConfig.resolve("NFGNN", {"lambda_max": "estimate"}, None, None, "none")
    assert estimated.hyper["lambda_max"] == "estimate"


def test_every_setting_of_the_package_is_declared_and_has_a_valid_default() -> None:
    for name in MODELS:
        settings = RunConfig.resolve(name, {}, None, None, "none").settings()
        assert settings.keys() <= SETTINGS.keys()
        for key, default in settings.items():
            SETTINGS[key].read(default)


def test_presets_and_search_spaces_are_inside_the_ranges() -> None:
    for name in MODELS:
        for settings in preset_entries(preset_tables(name)):
            for key, value in settings.items():
                SETTINGS[key].read(value)
        for kind in ("best", "paper"):
            for key, values in search_space(name, kind, {}).items():
                for value in values:
                    SETTINGS[key].read(value)


def preset_entries(tables: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all tables whose values are settings."""
    entries = []
    for name, table in tables.items():
        if name in (*KINDS, *GATE_KINDS):
            entries += preset_entries(table)
        elif name == "default":
            entries.append(table)
        else:
            entries += table.values()
    assert entries or not tables
    return entries


def test_a_model_of_the_user_decides_what_the_table_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Own(MLP):
        def __init__(
            self,
            in_channels: int,
            out_channels: int,
            depth: int = 3,
            scale: float = 1.0,
            mode: str = "fast",
            alpha: float = 2.5,
            extra: object = None,
        ) -> None:
            super().__init__(in_channels, out_channels)

    monkeypatch.setitem(MODELS, "Own", entry_of(Own))
    config = RunConfig.resolve("Own", {"depth": 4.0, "scale": 2, "alpha": 7}, None, None)
    assert config.hyper == {"depth": 4, "scale": 2.0, "mode": "fast", "alpha": 7.0, "extra": None}
    for settings, message in (
        ({"depth": 1.5}, "it takes a finite whole number"),
        ({"scale": math.inf}, "it takes a finite number"),
        ({"alpha": math.nan}, "it takes a finite number"),
        ({"mode": 3}, "it takes a name like 'fast'"),
        ({"extra": math.nan}, "it takes a finite number"),
    ):
        with pytest.raises(UserError, match=message):
            RunConfig.resolve("Own", settings, None, None)


def entry_of(model: type[NodeModel]) -> ModelEntry:
    assert "depth" in inspect.signature(model).parameters
    return ModelEntry("Own", model, "a title", 2025, "O(n)")


def test_very_long_values_are_shortened() -> None:
    with pytest.raises(UserError, match="more than 30 digits") as error:
        check_setting("K", 10**6000, 10)
    assert len(str(error.value)) < 150
    with pytest.raises(UserError) as error:
        check_setting("K", "x" * 10_000, 10)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"K": 10**6}, "K = 1000000 is not valid"),
        ({"dropout": math.nan}, "dropout = nan is not valid"),
        ({"hidden_channels": -5}, "hidden_channels = -5 is not valid"),
        ({"basis": [1]}, "basis = .1. is not valid"),
        ({"model": 3}, "does not specify a model"),
    ],
)
def test_a_saved_model_with_invalid_settings_is_refused(
    tmp_path: Path, damage: dict[str, Any], message: str
) -> None:
    data = split(load_dataset("karate"), "stratified", 0)
    NodeClassifier("NFGNN", epochs=2).fit(data).save(tmp_path / "model")
    file = tmp_path / "model" / "classifier.json"
    description = json.loads(file.read_text())
    description["config"] |= damage
    file.write_text(json.dumps(description))
    write_checksums(tmp_path / "model", ["classifier.json", "weights.safetensors"])
    with pytest.raises(UserError, match=message):
        NodeClassifier.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["norm", "input_dropout"])
def test_settings_that_were_added_later_keep_old_configurations(name: str) -> None:
    """Old files lack them; configurations with the old behaviour are written without them."""
    config = RunConfig.resolve("NFNet", {}, None, None, "none")
    saved = config.to_dict()
    assert name not in saved
    assert RunConfig.from_dict(saved) == config
    other = RunConfig.resolve("NFNet", {"norm": "batch", "input_dropout": 0.5}, None, None, "none")
    assert RunConfig.from_dict(other.to_dict()) == other
    assert name in other.to_dict()
