"""Proposals of new settings."""

import sys

import pytest

from nfgnn.auto.sampler import Sampler, ScoredConfig
from nfgnn.training import RunConfig
from nfgnn.training.search_spaces import NUMERIC


def config(model: str = "NFGNN", **settings: object) -> RunConfig:
    return RunConfig.resolve(model, {"epochs": 77, **settings}, None, None, "none")


KNOWN = [ScoredConfig(config(lr=0.013), 0.8), ScoredConfig(config(K=7), None)]


def proposals(seed: int, score: float = 0.5) -> list[RunConfig]:
    """Return two batches of proposals, the first of which all have the same score."""
    sampler = Sampler(KNOWN, seed)
    first = sampler.ask(6)
    sampler.tell([ScoredConfig(proposed, score) for proposed in first])
    return first + sampler.ask(6)


@pytest.fixture(params=["with Optuna", "without Optuna"])
def optuna_or_not(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without Optuna":
        monkeypatch.setitem(sys.modules, "optuna", None)


@pytest.mark.usefixtures("optuna_or_not")
def test_proposals_are_new_models_that_can_be_built() -> None:
    found = proposals(seed=0)
    assert len(found) == 12
    for number, proposed in enumerate(found):
        proposed.build(3, 2, 4)
        assert proposed.model == "NFGNN"
        assert proposed.training.epochs == 77  # not searched
        assert proposed not in found[:number]
        assert proposed not in [entry.config for entry in KNOWN]


@pytest.mark.usefixtures("optuna_or_not")
def test_the_same_scores_lead_to_the_same_proposals() -> None:
    assert proposals(seed=3) == proposals(seed=3)
    assert proposals(seed=3) != proposals(seed=4)


@pytest.mark.usefixtures("optuna_or_not")
def test_half_of_the_proposals_are_near_the_best() -> None:
    best = config(lr=0.013).settings()
    near = 0
    for proposed in proposals(seed=1)[:6]:
        settings = proposed.settings()
        near += sum(settings[name] != best[name] for name in best) <= 3
    assert near >= 3


@pytest.mark.usefixtures("optuna_or_not")
def test_proposals_of_one_shape_differ_in_numbers_only() -> None:
    found = [proposed.settings() for proposed in Sampler(KNOWN, 0).ask(6, same_shape=True)]
    assert len(found) == 6
    shapes = [
        {name: value for name, value in settings.items() if name not in NUMERIC}
        for settings in found
    ]
    assert all(shape == shapes[0] for shape in shapes)


def test_every_model_of_the_portfolio_can_be_searched() -> None:
    from nfgnn.auto import load_portfolio

    entries = {entry.config.model: entry.config for entry in load_portfolio()}
    for known in entries.values():
        found = Sampler([ScoredConfig(known, 0.5)], 0).ask(2)
        assert found, known.model
