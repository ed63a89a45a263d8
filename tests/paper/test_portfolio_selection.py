"""Greedy selection against brute force, ties, missing results, and the rules for first entries."""

import itertools

import numpy as np
import pytest

from nfgnn.auto import FEATURES, LINKS
from nfgnn.paper.search import portfolio_selection as module
from nfgnn.paper.search.portfolio_candidates import Candidate, Column
from nfgnn.paper.search.portfolio_matrix import Matrix
from nfgnn.paper.search.portfolio_selection import select_portfolio
from nfgnn.training import RunConfig

NAN = float("nan")


def make_matrix(
    validation: list[list[float]], cost: list[float] | None = None, models: str | list[str] = "GCN"
) -> Matrix:
    """Return a matrix whose candidates differ in the learning rate."""
    values = np.array(validation)
    names = [models] * len(values) if isinstance(models, str) else models
    configs = [
        RunConfig.resolve(name, {"lr": 0.001 * (row + 1)}, None, None, "none")
        for row, name in enumerate(names)
    ]
    return Matrix(
        candidates=tuple(map(Candidate, configs)),
        columns=tuple(Column(f"graph {j}", "full") for j in range(values.shape[1])),
        validation=values,
        test=values,
        cost=np.ones(len(values)) if cost is None else np.array(cost),
        noise=np.zeros(values.shape[1]),
    )


def mean_regret(matrix: Matrix, rows: tuple[int, ...]) -> float:
    """Mean over graphs of the regret of the best of some candidates, written as loops."""
    total = 0.0
    for column in range(len(matrix.columns)):
        values = matrix.validation[:, column]
        total += max(values) - max(values[row] for row in rows)
    return total / len(matrix.columns)


@pytest.mark.parametrize("seed", range(5))
def test_every_step_is_the_best_of_all_continuations(seed: int) -> None:
    values = np.random.default_rng(seed).uniform(0, 100, (9, 4)).round(1)
    matrix = make_matrix(values.tolist())
    chosen = select_portfolio(matrix, 3)
    for size in (1, 2, 3):
        before = tuple(chosen[: size - 1])
        regrets = {
            row: mean_regret(matrix, (*before, row)) for row in range(9) if row not in before
        }
        assert regrets[chosen[size - 1]] <= min(regrets.values()) + module.TOLERANCE
    # Greedy selection reaches 1 - 1/e of the best gain, because gains are submodular.
    start = float(np.mean(values.max(0) - values.min(0)))
    best_pair = min(mean_regret(matrix, pair) for pair in itertools.combinations(range(9), 2))
    gain = start - mean_regret(matrix, (chosen[0], chosen[1]))
    assert gain >= (1 - 1 / np.e) * (start - best_pair) - module.TOLERANCE


def test_complementary_candidates_come_before_the_second_best_on_average() -> None:
    """The second row is the best on average. The third is worse, but helps where it fails."""
    matrix = make_matrix([[89, 89, 20], [90, 90, 20], [30, 30, 60], [10, 10, 10]])
    assert select_portfolio(matrix, 2) == [1, 2]


def test_the_cheapest_of_equal_candidates_is_taken() -> None:
    matrix = make_matrix([[90, 80], [90.02, 80], [90, 80.01], [10, 10]], cost=[3, 2, 1, 0.1])
    assert select_portfolio(matrix, 1) == [2]


def test_a_missing_result_helps_nowhere() -> None:
    matrix = make_matrix([[95, NAN], [90, 70], [NAN, 71], [20, 20]])
    # Row 1 alone helps on both graphs; the others then improve one graph each.
    assert select_portfolio(matrix, 3) == [1, 0, 2]


def test_the_selection_starts_over_when_every_graph_has_its_best() -> None:
    matrix = make_matrix([[90, 80], [89, 79], [88, 80], [10, 10]])
    assert select_portfolio(matrix, 4) == [0, 1, 2, 3]


def test_first_entries_are_cheap_and_soon_of_every_family() -> None:
    models = ["GCN"] * 8 + ["MLP", "LINK"]
    values = [[90.0 - row, 50.0 + row] for row in range(8)] + [[1.0, 1.0], [2.0, 2.0]]
    cost = [0.1, 9, 9, 9, 9, 9, 0.1, 0.1, 0.1, 9]
    matrix = make_matrix(values, cost, models)
    chosen = select_portfolio(matrix, 10)
    assert sorted(chosen) == list(range(10))
    median = np.median(cost)
    assert all(cost[row] <= median for row in chosen[: module.CHEAP_ENTRIES])
    families = {matrix.families[row] for row in chosen[: module.FAMILY_ENTRIES]}
    assert {FEATURES, LINKS} <= families


def test_fewer_candidates_than_entries_are_all_taken() -> None:
    assert select_portfolio(make_matrix([[1.0], [2.0]]), 5) == [1, 0]
