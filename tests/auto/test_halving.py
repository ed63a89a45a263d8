"""Successive halving, by hand."""

from nfgnn.auto.halving import Rung, next_rung, shortened, with_epochs
from nfgnn.training import RunConfig


def test_everything_is_trained_to_the_end_if_there_is_time() -> None:
    assert next_rung([3.0, 1.0, 2.0], 20, 500, available=6.0) == Rung(3, None)


def test_the_better_half_is_trained_to_the_end_if_only_that_fits() -> None:
    assert next_rung([3.0, 1.0, 2.0, 5.0, 1.0], 20, 500, available=6.5) == Rung(3, None)


def test_a_half_that_does_not_fit_is_trained_longer() -> None:
    # Eight configurations of 10 s, 30 s left: 8 → 4 for 80 epochs → 2 to the end.
    costs = [10.0] * 8
    assert next_rung(costs, 20, 500, available=30.0) == Rung(4, 80)
    assert next_rung(costs[:4], 80, 500, available=25.0) == Rung(2, None)


def test_rounds_do_not_grow_beyond_whole_trainings() -> None:
    assert next_rung([10.0] * 8, 80, 320, available=1.0) == Rung(4, None)


def test_shortened_trainings_keep_everything_else() -> None:
    config = RunConfig.resolve("GCN", {"epochs": 100, "lr": 0.02}, None, None, "none")
    short = shortened(config, 20)
    assert short.training.epochs == 20
    assert short.training.restarts == 0
    assert short.training.lr == 0.02
    assert shortened(config, 100) == config
    assert shortened(config, None) == config
    assert with_epochs(config, 7).training.epochs == 7
