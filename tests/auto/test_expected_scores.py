"""Expected scores of unfinished trainings, by hand."""

import math

import pytest

from nfgnn.auto.expected_scores import PartialRun, expected_scores


def run(*curve: float, is_finished: bool = True) -> PartialRun:
    return PartialRun(max(curve), curve, is_finished)


def test_a_finished_training_keeps_its_score() -> None:
    # The epoch of least loss need not be the one of the best score.
    assert expected_scores([PartialRun(0.6, (0.5, 0.7), True), run(0.1, 0.2, 0.9)]) == [0.6, 0.9]


def test_an_unfinished_training_gains_as_much_as_others_after_as_many_epochs() -> None:
    runs = [
        run(0.4, 0.6, is_finished=False),
        run(0.2, 0.5, 0.8),  # gains 0.3 after two epochs
        run(0.3, 0.4, 0.1, 0.5),  # gains 0.1
        run(0.7, 0.6, 0.6),  # gains nothing
    ]
    assert expected_scores(runs) == pytest.approx([0.9, 0.8, 0.5, 0.7])


def test_the_gain_is_an_upper_quantile() -> None:
    others = [run(0.0, gain / 10) for gain in range(11)]
    unfinished = run(0.1, is_finished=False)
    assert expected_scores([*others, unfinished])[-1] == pytest.approx(0.1 + 0.8)


def test_the_longest_training_gains_nothing() -> None:
    runs = [run(0.1, 0.2, 0.3, is_finished=False), run(0.5), run(-math.inf, 0.2, 0.6, 0.7)]
    longest = run(0.1, 0.2, 0.3, 0.4, 0.5, is_finished=False)
    assert expected_scores([*runs, longest])[-1] == 0.5


def test_scores_that_are_not_defined_at_first_are_no_gain() -> None:
    runs = [run(0.4, is_finished=False), run(-math.inf, 0.5), run(0.3, 0.4)]
    assert expected_scores(runs)[0] == pytest.approx(0.5)
