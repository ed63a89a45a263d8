"""What auto reports on graphs whose labels, edges or features are noise."""

from dataclasses import replace
from pathlib import Path

import pytest

from nfgnn.paper.studies.auto_noise import (
    CASES,
    HELP,
    LEVELS,
    NO_HELP,
    NOTHING,
    UNCERTAIN,
    NoiseCase,
    NoiseOutcome,
    answer,
    contradictions,
    markdown,
    run_noise,
)

PORTFOLIO = "".join(
    f'[[configuration]]\nmodel = "{model}"\nepochs = 60\nlr = 0.05\n'
    for model in ("GCN", "MLP", "LINK")
)


@pytest.mark.parametrize("case", CASES[:3], ids=lambda case: case.name)
def test_noise_is_reported(case: NoiseCase, tmp_path: Path) -> None:
    (tmp_path / "portfolio.toml").write_text(PORTFOLIO)
    (outcome,) = run_noise([case], [0], 15, 400, tmp_path / "portfolio.toml")
    assert outcome.is_right, outcome
    if case.shuffled:
        assert outcome.test == pytest.approx(outcome.test_majority, abs=0.12)
    else:
        assert outcome.test > outcome.test_majority + 0.1


def test_the_graphs_have_the_noise() -> None:
    shuffled, useless_edges, useless_features, both = (case.graph(0) for case in CASES)
    for data in (shuffled, useless_edges):
        same = data.y[data.edge_index[0]] == data.y[data.edge_index[1]]
        assert float(same.double().mean()) == pytest.approx(1 / 3, abs=0.03)
    same = both.y[both.edge_index[0]] == both.y[both.edge_index[1]]
    assert float(same.double().mean()) > 0.5
    means = [[data.x[data.y == c].mean(0) for c in range(3)] for data in (useless_features, both)]
    distances = [float((of[0] - of[1]).norm()) for of in means]
    assert distances[0] < 0.5 < distances[1]
    assert both.get("registered_name") is None


def outcome(case: NoiseCase, seed: int, edges: str, features: str) -> NoiseOutcome:
    return NoiseOutcome(case, seed, edges, features, 0.5, 0.4, 0.6, 0.3)


def test_answers_are_read_from_the_sentences() -> None:
    first = "The best model, GCN, scores 90 %."
    assert answer([first, "The edges help: GCN gains 2 points."], "edges") == HELP
    assert answer([first, "It is not certain that the edges help: GCN."], "edges") == UNCERTAIN
    sentence = "As far as 40 validation nodes show, the features do not help: MLP."
    assert answer([first, sentence], "features") == NO_HELP
    assert answer([first, sentence], "edges") == "not known"
    assert answer(["Nothing can be learned from these features and edges: 40 %."], "x") == NOTHING


def test_reports_that_contradict_each_other_are_named() -> None:
    level = LEVELS[0]
    found = [outcome(level, 0, HELP, HELP), outcome(level, 1, UNCERTAIN, HELP)]
    assert contradictions(found) == []
    assert contradictions([*found, outcome(level, 2, NO_HELP, HELP)]) == [level]
    useless_edges = CASES[1]
    assert outcome(useless_edges, 0, UNCERTAIN, HELP).is_right
    assert not outcome(useless_edges, 0, HELP, HELP).is_right
    assert not outcome(replace(useless_edges, edges=HELP), 0, NO_HELP, HELP).is_right
    text = markdown(found, "python benchmarks/auto_noise.py", "a machine")
    assert "| help ×1, not certain ×1 | help ×2 | 50.0 | 40.0 | 60.0 | 30.0 | 2 of 2 |" in text
    assert "2 of 2 reports are right." in text
