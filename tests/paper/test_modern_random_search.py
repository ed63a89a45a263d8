"""The longer search on the two smallest graphs: validation accuracy alone selects."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nfgnn.training import Record, RunConfig

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "modern_random_search.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("modern_random_search", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class FakeEvaluator:
    """Validation accuracy is the learning rate; test accuracy is the opposite."""

    score_test: bool = False
    calls: list[tuple[int, int, bool]] = field(default_factory=list)
    """Configurations, splits and whether test nodes were scored, per call."""

    def evaluate(self, configs: Sequence[RunConfig], seeds: Sequence[int]) -> list[list[Record]]:
        self.calls.append((len(configs), len(seeds), self.score_test))
        return [[self.record(config, seed) for seed in seeds] for config in configs]

    def record(self, config: RunConfig, seed: int) -> Record:
        settings = config.to_dict()
        metrics = {"val_accuracy": settings["lr"], "test_accuracy": 1 - settings["lr"]}
        return Record("graph", "hash", "public", seed, settings, metrics, "cpu", "a machine")


@pytest.mark.parametrize("model", ["NFNet", "ResidualGCN"])
def test_validation_selects_and_only_the_report_scores_test_nodes(
    model: str, script: ModuleType
) -> None:
    evaluator = FakeEvaluator()
    result = script.search("chameleon-filtered", model, evaluator)
    draws = script.draws_of(model)
    highest = max(draw["lr"] for draw in draws)
    first = next(draw for draw in draws if draw["lr"] == highest)
    assert result.draw == first
    assert evaluator.calls == [(50, 2, False), (10, 4, False), (3, 10, False), (1, 10, True)]
    trained = sum(count * splits for count, splits, _ in evaluator.calls)
    assert trained == script.number_of_runs()
    for runs in (result.search_runs, result.report_runs):
        assert [run.config["lr"] for run in runs] == [highest] * 10
    assert [run.seed for run in result.report_runs] == list(range(1000, 1010))


def test_draws_are_the_same_in_every_call(script: ModuleType) -> None:
    draws: list[dict[str, Any]] = script.draws_of("NFNet")
    assert draws == script.draws_of("NFNet")
    assert len({str(draw) for draw in draws}) == 50
    for draw in draws:
        script.config_of("NFNet", draw, 100)  # every value is valid
