"""Greedy selection against brute force, ties, missing results, and the rules for first entries."""

import itertools

import numpy as np
import pytest

from nfgnn.auto import FEATURES, LINKS, load_portfolio, model_family
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
        families=tuple(model_family(name) for name in names),
        tied=np.array([name == "LINK" for name in names]),
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


def test_a_missing_regret_is_a_weighted_mean_of_similar_candidates() -> None:
    values = np.array([[95, 80, NAN], [94, 80, 70], [20, 30, 60], [50, NAN, 90]])
    matrix = make_matrix(values.tolist())
    regret = values.max(axis=0, initial=0, where=~np.isnan(values)) - values
    # Distances are over the graphs that both have, scaled to all three.
    distances = [
        np.sqrt(3 / 2 * np.sum((regret[0, :2] - regret[1, :2]) ** 2)),
        np.sqrt(3 / 2 * np.sum((regret[0, :2] - regret[2, :2]) ** 2)),
        np.sqrt(3 / 1 * (regret[0, 0] - regret[3, 0]) ** 2),
    ]
    weights = 1 / np.array(distances)
    expected = np.sum(weights * regret[1:, 2]) / np.sum(weights)
    assert module.estimated_regret(matrix)[0, 2] == pytest.approx(expected)


def test_a_missing_result_neither_favours_nor_punishes() -> None:
    """It is a little better or worse than candidates that do alike where both have results."""
    alike = [[94.0, 79.0 - 0.1 * row, 70.0] for row in range(10)]
    others = [[20.0 + row, 10.0, 15.0] for row in range(10)]
    assert select_portfolio(make_matrix([[95, 80, NAN], *alike, *others]), 1) == [0]
    assert select_portfolio(make_matrix([[93, 78, NAN], *alike, *others]), 1) == [1]


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


def test_the_entry_of_a_family_is_the_best_of_it_alone() -> None:
    """The second MLP would add more to what is chosen, but the first is better by itself."""
    models = ["GCN"] * 4 + ["MLP", "MLP", "LINK"]
    values = [[90.0 if row == column else 10.0 for column in range(5)] for row in range(4)]
    values += [[12.0] * 5, [0.0, 0.0, 0.0, 0.0, 58.0], [0.0] * 5]
    chosen = select_portfolio(make_matrix(values, models=models), 6)
    assert sorted(chosen[:4]) == [0, 1, 2, 3]
    assert sorted(chosen[4:]) == [4, 6]


def test_the_first_entry_can_be_applied_to_other_nodes() -> None:
    matrix = make_matrix([[90.0], [80.0]], models=["LINK", "GCN"])
    assert select_portfolio(matrix, 1) == [1]


def test_fewer_candidates_than_entries_are_all_taken() -> None:
    assert select_portfolio(make_matrix([[1.0], [2.0]]), 5) == [1, 0]


def test_models_without_edges_have_every_scaling() -> None:
    shipped = load_portfolio()[: module.SCALING_ENTRIES]
    scalings = {e.config.training.features for e in shipped if e.family == FEATURES}
    assert scalings == {"auto", "row", "raw", "standard"}
