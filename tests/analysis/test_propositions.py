"""The propositions against the transition matrix, the formulas of the paper, and simulations."""

import itertools
import math

import pytest
import torch

from nfgnn.analysis.propositions import (
    ALWAYS_HOMOPHILIC,
    gains_from_two_hops,
    preference,
    preference_threshold,
    same_class_probability,
    simulate_same_class,
    surely_heterophilic,
)

ALPHAS = torch.linspace(0, 1, 201, dtype=torch.float64).tolist()
CLASSES = (2, 3, 4, 7, 40)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_powers_of_the_transition_matrix(classes: int, steps: int) -> None:
    for alpha in ALPHAS[::20]:
        chain = torch.full(
            (classes, classes), (1 - alpha) / (classes - 1), dtype=torch.float64
        ).fill_diagonal_(alpha)
        expected = float(torch.linalg.matrix_power(chain, steps)[0, 0])
        assert same_class_probability(alpha, classes, steps) == pytest.approx(expected)


@pytest.mark.parametrize("classes", CLASSES)
def test_formula_of_the_paper(classes: int) -> None:
    for a in ALPHAS:
        paper = (2 * a * (a * classes - 2) + (3 - classes)) / (classes - 1)
        assert preference(a, classes) == pytest.approx(paper, abs=1e-12)


@pytest.mark.parametrize("classes", CLASSES)
def test_thresholds(classes: int) -> None:
    exact = preference_threshold(classes)
    for a in ALPHAS:
        epsilon = preference(a, classes)
        if classes > 2:
            assert a > surely_heterophilic(classes) or epsilon <= 1e-12  # Proposition 1
            if abs(a - exact) > 1e-9 and (classes, a) != (3, 0.0):
                assert (epsilon > 0) == (a > exact)  # and where it really turns
        else:
            assert epsilon >= 0  # Remark 2, equality at 1/2
        assert a < ALWAYS_HOMOPHILIC or epsilon > 0  # Remark 1
        if abs(a - 1 / classes) > 1e-9:
            assert gains_from_two_hops(a, classes) == (
                same_class_probability(a, classes) > a
            )  # Proposition 2


def test_where_the_bound_is_tight() -> None:
    assert preference_threshold(3) == pytest.approx(surely_heterophilic(3))
    assert preference_threshold(10**6) == pytest.approx(math.sqrt(0.5), abs=1e-5)


@pytest.mark.parametrize(
    ("alpha", "classes", "hops"),
    [(0.2, 5, 2), (0.75, 3, 2), (0.05, 4, 2), (0.4, 2, 4), (0.6, 4, 1)],
)
def test_simulation_agrees_within_its_error(alpha: float, classes: int, hops: int) -> None:
    estimate, error = simulate_same_class(alpha, classes, hops, nodes=400, trees=30)
    assert 0 < error < 0.03
    assert abs(estimate - same_class_probability(alpha, classes, hops)) < 4 * error


def test_invalid_arguments() -> None:
    for alpha, classes in itertools.product((-0.1, 1.1), (2, 5)):
        with pytest.raises(ValueError, match="alpha"):
            preference(alpha, classes)
    with pytest.raises(ValueError, match="classes"):
        preference_threshold(1)
