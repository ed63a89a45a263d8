"""From recorded runs to scores per candidate and graph."""

from dataclasses import replace

import numpy as np
import pytest

from nfgnn.paper.search.portfolio_candidates import Candidate, portfolio_candidates
from nfgnn.paper.search.portfolio_matrix import make_matrix
from nfgnn.training import Record

FIRST, SECOND, *_ = portfolio_candidates()
WINNER = next(c for c in portfolio_candidates() if "chameleon" in c.origins)


def run(
    candidate: Candidate, dataset: str, seed: int, val: float, test: float = 0.5, **changes: object
) -> Record:
    protocol = "public" if dataset == "minesweeper" else "full"
    metrics = {"val_accuracy": val, "test_accuracy": test, "val_loss": 1.0, "seconds": 2.0}
    config = candidate.config.to_dict()
    config.pop("select")  # what is recorded for a graph that selects by the loss
    record = Record(dataset, "0", protocol, seed, config, metrics, "cpu", "two cores")
    return replace(record, **changes)


def test_cells_are_means_over_both_seeds() -> None:
    records = [run(FIRST, "cora", 0, 0.8, 0.6), run(FIRST, "cora", 1, 0.9, 0.8)]
    # One seed alone is no result, and neither is a run of the report.
    records += [run(SECOND, "cora", 0, 0.9), run(SECOND, "cora", 1000, 0.9)]
    matrix = make_matrix(records)
    assert matrix.candidates == (FIRST,)
    assert [column.name for column in matrix.columns] == ["cora"]
    assert matrix.validation.tolist() == [[pytest.approx(85.0)]]
    assert matrix.test.tolist() == [[pytest.approx(70.0)]]


def test_the_official_metric_counts() -> None:
    metrics = {"val_accuracy": 0.8, "test_accuracy": 0.8, "seconds": 1.0}
    metrics |= {"val_roc_auc": 0.6, "test_roc_auc": 0.7}
    config = {**FIRST.config.to_dict(), "select": "metric"}
    records = [
        run(FIRST, "minesweeper", seed, 0, metrics=metrics, config=config) for seed in (0, 1)
    ]
    matrix = make_matrix(records)
    assert matrix.validation.tolist() == [[pytest.approx(60.0)]]
    assert matrix.test.tolist() == [[pytest.approx(70.0)]]


def test_regret_is_the_distance_to_the_best_and_missing_results_stay_missing() -> None:
    records = [run(FIRST, "cora", seed, 0.8) for seed in (0, 1)]
    records += [run(FIRST, "pubmed", seed, 0.7) for seed in (0, 1)]
    records += [run(SECOND, "cora", seed, 0.9) for seed in (0, 1)]
    regret = make_matrix(records).regret()
    np.testing.assert_allclose(regret, [[10.0, 0.0], [0.0, np.nan]], atol=1e-9)


def test_costs_are_relative_to_the_median_on_a_cpu() -> None:
    def timed(candidate: Candidate, dataset: str, seconds: float, device: str) -> list[Record]:
        metrics = {"val_accuracy": 0.5, "test_accuracy": 0.5, "seconds": seconds}
        return [run(candidate, dataset, s, 0, metrics=metrics, device=device) for s in (0, 1)]

    records = [*timed(FIRST, "cora", 1, "cpu"), *timed(SECOND, "cora", 4, "cpu")]
    records += [*timed(FIRST, "texas", 8, "cpu"), *timed(SECOND, "texas", 8, "cpu")]
    # Seconds on a GPU only count for candidates without others.
    records += [*timed(FIRST, "pubmed", 100, "H200"), *timed(WINNER, "pubmed", 300, "H200")]
    matrix = make_matrix(records)
    by_config = {id(c): cost for c, cost in zip(matrix.candidates, matrix.cost)}
    # The median of times 1 and 4 is their geometric mean, and both take as long on Texas.
    assert by_config[id(FIRST)] == pytest.approx((1 / 2) ** 0.5)
    assert by_config[id(SECOND)] == pytest.approx((4 / 2) ** 0.5)
    assert by_config[id(WINNER)] == pytest.approx((300 / 100) ** 0.5)


def test_a_slow_machine_makes_a_candidate_no_more_expensive() -> None:
    records = []
    for candidate, machine, factor in ((FIRST, "fast", 1), (SECOND, "slow", 10)):
        # The candidate in question, and another one that is twice as expensive on this machine.
        for other, seconds in ((candidate, 1), (WINNER, 2)):
            metrics = {"val_accuracy": 0.5, "test_accuracy": 0.5, "seconds": factor * seconds}
            dataset = "cora" if machine == "fast" else "texas"
            changes = {"metrics": metrics, "machine": machine}
            records += [run(other, dataset, seed, 0, **changes) for seed in (0, 1)]
    matrix = make_matrix(records)
    first, second, winner = matrix.cost
    assert first == pytest.approx(second) == pytest.approx(winner / 2)


def test_noise_ignores_that_one_split_is_easier() -> None:
    records = []
    generator = np.random.default_rng(0)
    for candidate in portfolio_candidates():
        values = 0.5 + 0.02 * generator.standard_normal(2)
        records += [
            run(candidate, "cora", 0, values[0]),
            run(candidate, "cora", 1, values[1] + 0.3),
        ]
    (noise,) = make_matrix(records).noise
    # Two runs with a deviation of 2 points each.
    assert noise == pytest.approx(2 / 2**0.5, rel=0.25)


def test_without_a_graph_its_relatives_and_their_winners_are_unknown() -> None:
    records = []
    for dataset in ("chameleon", "cora"):
        for candidate in (FIRST, WINNER):
            records += [run(candidate, dataset, seed, 0.8) for seed in (0, 1)]
    matrix = make_matrix(records)
    part = matrix.without("chameleon-filtered")
    assert part.candidates == (FIRST,)
    assert [column.name for column in part.columns] == ["cora"]
    assert part.validation.shape == part.test.shape == (1, 1)
    assert matrix.without("pubmed").candidates == matrix.candidates
