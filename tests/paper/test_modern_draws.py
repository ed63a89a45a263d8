"""The draws of the search on the newer benchmarks."""

import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nfgnn.errors import UserError
from nfgnn.paper.search import modern_draws as module
from nfgnn.paper.search.modern_draws import (
    DRAWS_PER_STRUCTURE,
    FIRST_DRAWS,
    Settings,
    final_settings,
    modern_draws,
    modern_space,
    published_draws,
    second_space,
)
from nfgnn.paper.table_registry import TABLES
from nfgnn.training import RunConfig
from nfgnn.training.search_spaces import NUMERIC, Space

MODELS = [row.model for row in TABLES["modern"].rows]
RESIDUAL = ["ResidualGCN", "ResidualSAGE", "ResidualGAT", "ResidualGATSep", "NFNet"]
NUMBERS = ("lr", "dropout", "weight_decay")
RECORDS = Path(__file__).parents[2] / "results" / "modern-search.parquet"


def _first_draw(space: Space, index: int) -> Settings:
    turns = module._spaces()["turns"]
    return module._draw("g", space, index, turns["structures"], turns["numbers"])


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
    before = [_first_draw(modern_space("GPRGNN"), i) for i in range(6)]
    space = {**modern_space("GPRGNN"), "warmup_epochs": (0, 10)}
    after = [_first_draw(space, i) for i in range(6)]
    assert [{n: v for n, v in a.items() if n != "warmup_epochs"} for a in after] == before


def test_models_share_the_draws_of_shared_settings() -> None:
    gpr = [_first_draw(modern_space("GPRGNN"), i) for i in range(8)]
    poly = [_first_draw(modern_space("PolyGNN"), i) for i in range(8)]
    for name in ("lr", "weight_decay", "features", "K", "alpha"):
        assert [draw[name] for draw in gpr] == [draw[name] for draw in poly]


def test_draws_of_one_structure_follow_each_other() -> None:
    drawn = [_first_draw(modern_space("MLP"), i) for i in range(DRAWS_PER_STRUCTURE)]
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


def test_the_first_draws_are_those_of_the_records() -> None:
    """The records identify a draw by its configuration, so a changed draw would lose its runs."""
    columns = ["dataset", "protocol", "model", "seed", "config"]
    recorded: dict[tuple[str, str], set[str]] = {}
    for row in pq.read_table(RECORDS, columns=columns).to_pylist():
        config = json.loads(row["config"])
        if row["seed"] == 0 and row["protocol"] == "public" and config["patience"] == 150:
            cell = (row["dataset"], row["model"])
            # Settings that a model got later have the value of the record's time.
            text = json.dumps(RunConfig.from_dict(config).to_dict(), sort_keys=True)
            recorded.setdefault(cell, set()).add(text)
    complete = 0
    for (dataset, model), configs in recorded.items():
        if len(configs) >= FIRST_DRAWS:
            drawn = modern_draws(f"{dataset} public", model, FIRST_DRAWS)
            expected = {_recorded_form(model, settings) for settings in drawn}
            assert expected <= configs, (dataset, model)
            complete += 1
    assert complete > 40


def _recorded_form(model: str, settings: Settings) -> str:
    config = RunConfig.resolve(model, {**settings, "precision": "auto"}, None, None, "none")
    return json.dumps(config.to_dict(), sort_keys=True)


@pytest.mark.parametrize("is_small", [True, False])
def test_further_draws_of_residual_networks_share_a_space(is_small: bool) -> None:
    """Equal effort: draw for draw, all five networks have the same width, depth and numbers."""
    graph = "a graph without published settings"
    own = {"K", "basis", "operator", "gate", "root_weight"}
    shared = []
    for model in RESIDUAL:
        space = second_space(model, is_small)
        drawn = modern_draws(graph, model, 2 * FIRST_DRAWS, is_small)[FIRST_DRAWS:]
        assert len(drawn) == FIRST_DRAWS
        for settings in drawn:
            config = RunConfig.resolve(model, settings, None, None, "none")
            assert (config.training.epochs, config.training.patience) == (1600, 150)
            assert all(settings[name] in space[name] for name in space)
        shared.append([{n: v for n, v in draw.items() if n not in own} for draw in drawn])
    assert all(draws == shared[0] for draws in shared)
    assert {draw["norm"] for draw in shared[0]} == {"layer", "batch"}
    assert len({draw["hidden_channels"] for draw in shared[0]}) == 3
    for name in ("dropout", "weight_decay"):
        # Every learning rate meets several values.
        pairs = {(draw["lr"], draw[name]) for draw in shared[0]}
        assert len(pairs) >= FIRST_DRAWS - 2


def test_only_small_graphs_have_the_largest_width() -> None:
    for model in RESIDUAL:
        assert max(second_space(model, True)["hidden_channels"]) == 512
        assert max(second_space(model, False)["hidden_channels"]) == 256


def test_every_list_of_the_second_space_has_one_value_per_structure() -> None:
    """Lists of other lengths would combine in ways that nobody has chosen."""
    numbers = module._second_spaces()["turns"]["numbers"]
    for is_small in (True, False):
        space = second_space("NFNet", is_small)
        lengths = {len(space[name]) for name in space if name not in numbers}
        assert lengths == {6}


def test_published_settings_are_the_tenth_draw() -> None:
    (published,) = published_draws("squirrel-filtered public", "ResidualGCN")
    drawn = modern_draws("squirrel-filtered public", "ResidualGCN", 12, True)
    assert published.items() <= drawn[FIRST_DRAWS].items()
    assert published["norm"] == "batch"
    assert (published["num_layers"], published["hidden_channels"]) == (4, 256)
    # A model without this setting takes the others.
    (plain,) = published_draws("chameleon-filtered public", "GCN")
    assert "norm" not in plain
    assert (plain["num_layers"], plain["hidden_channels"]) == (5, 512)
    assert published_draws("tolokers public", "NFNet") == []


def test_other_models_continue_with_their_space() -> None:
    space = modern_space("FSGNN")
    for settings in modern_draws("tolokers public", "FSGNN", 2 * FIRST_DRAWS):
        assert all(settings[name] in space[name] for name in space)
