"""The draws of the search on the newer benchmarks."""

from collections.abc import Sequence
from itertools import combinations

import pytest

from nfgnn.errors import UserError
from nfgnn.paper.search import modern_draws as module
from nfgnn.paper.search.modern_draws import (
    DRAWS_PER_STRUCTURE,
    Settings,
    final_settings,
    modern_draws,
    modern_space,
)
from nfgnn.paper.table_registry import TABLES
from nfgnn.training import RunConfig
from nfgnn.training.search_spaces import NUMERIC, Space

MODELS = [row.model for row in TABLES["modern"].rows]
RESIDUAL = ["ResidualGCN", "ResidualSAGE", "ResidualGAT", "ResidualGATSep", "NFNet"]
NUMBERS = ("lr", "dropout", "weight_decay")


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_the_same_number_of_draws(model: str) -> None:
    drawn = modern_draws("tolokers public", model, 4)
    assert len(drawn) == 4
    for settings in drawn:
        assert drawn.count(settings) == 1
        config = RunConfig.resolve(model, settings, None, None, "none")
        assert config.training.select == "metric"
        assert (config.training.epochs, config.training.patience) == (1600, 150)
        for name, values in modern_space(model).items():
            assert settings[name] in values


def test_further_draws_leave_the_first_ones_as_they_are() -> None:
    few = modern_draws("tolokers public", "NFGNN", 3)
    assert modern_draws("tolokers public", "NFGNN", 9)[:3] == few
    assert modern_draws("minesweeper public", "NFGNN", 3) != few


def test_a_further_setting_leaves_the_others_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [module._draw("g", modern_space("GPRGNN"), i) for i in range(6)]
    space = {**modern_space("GPRGNN"), "warmup_epochs": (0, 10)}
    after = [module._draw("g", space, i) for i in range(6)]
    assert [{n: v for n, v in a.items() if n != "warmup_epochs"} for a in after] == before


def test_models_share_the_draws_of_shared_settings() -> None:
    gpr = [module._draw("g", modern_space("GPRGNN"), i) for i in range(8)]
    poly = [module._draw("g", modern_space("PolyGNN"), i) for i in range(8)]
    for name in ("lr", "weight_decay", "features", "K", "alpha"):
        assert [draw[name] for draw in gpr] == [draw[name] for draw in poly]


def test_draws_of_one_structure_follow_each_other() -> None:
    drawn = [module._draw("g", modern_space("MLP"), i) for i in range(DRAWS_PER_STRUCTURE)]
    shapes = [{n: v for n, v in draw.items() if n not in NUMERIC} for draw in drawn]
    assert all(shape == shapes[0] for shape in shapes)
    assert any(draw != drawn[0] for draw in drawn)


@pytest.mark.parametrize("model", RESIDUAL)
def test_numbers_of_the_first_nine_draws_form_a_latin_square(model: str) -> None:
    """Three structures of three draws: every value meets every value of the other settings."""
    space = modern_space(model)
    drawn = modern_draws("tolokers public", model, 9)
    assert [len(space[name]) for name in NUMBERS] == [3, 3, 3]
    for start in range(0, 9, 3):
        for name in NUMBERS:
            assert_tried(drawn[start : start + 3], name, space)
    for first, second in combinations(NUMBERS, 2):
        for value in space[first]:
            assert_tried([draw for draw in drawn if draw[first] == value], second, space)


def assert_tried(draws: Sequence[Settings], name: str, space: Space) -> None:
    """Check that the draws have every value as often as the space has it."""
    assert sorted(draw[name] for draw in draws) == sorted(space[name])


def test_depth_changes_from_structure_to_structure() -> None:
    drawn = modern_draws("tolokers public", "ResidualGCN", 9)
    assert [draw["num_layers"] for draw in drawn] == [15] * 3 + [4] * 3 + [8] * 3


def test_final_settings_are_epochs_and_patience() -> None:
    assert final_settings() == {"epochs": 2000, "patience": 500}


def test_too_many_draws_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "modern_space", lambda _: {"lr": (0.1, 0.2)})
    with pytest.raises(UserError, match="no 3 different configurations"):
        modern_draws("a graph that no other test draws for", "MLP", 3)
