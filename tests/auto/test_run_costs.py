"""Estimated times of runs."""

import pytest

from nfgnn.auto.candidate_runs import RunRecord
from nfgnn.auto.run_costs import RunCosts
from nfgnn.training import RunConfig


def config(model: str = "GCN", **settings: object) -> RunConfig:
    return RunConfig.resolve(model, {"epochs": 300, **settings}, None, None, "none")


def test_nothing_is_known_at_first() -> None:
    assert RunCosts().seconds(config()) == 0.0


def test_time_per_epoch_comes_from_runs_of_the_same_shape() -> None:
    costs = RunCosts()
    costs.add(config(epochs=20), RunRecord(epochs=20, seconds=2.0, extra_seconds=0.5))
    costs.add(config(hidden_channels=256), RunRecord(epochs=300, seconds=300.0))
    # No training has stopped by itself, so 250 epochs are expected: 250 × 0.1 s + 0.5 s.
    assert costs.seconds(config(lr=0.05)) == pytest.approx(25.5)
    assert costs.seconds(config(epochs=10)) == pytest.approx(1.5)


def test_a_new_shape_costs_as_much_as_others_of_its_model() -> None:
    costs = RunCosts()
    costs.add(config(), RunRecord(epochs=100, seconds=10.0))
    costs.add(config(hidden_channels=256), RunRecord(epochs=100, seconds=30.0))
    assert costs.seconds(config(hidden_channels=7)) == pytest.approx(0.2 * 100)
    assert costs.seconds(config("MLP")) == 0.0


def test_epochs_are_those_of_trainings_that_stopped() -> None:
    costs = RunCosts()
    costs.add(config(), RunRecord(epochs=150, seconds=15.0))
    costs.add(config(lr=0.05), RunRecord(epochs=50, seconds=5.0))
    costs.add(config(lr=0.02), RunRecord(epochs=10, seconds=1.0, is_cut=True))
    assert costs.epochs(config()) == 150
    assert costs.epochs(config(lr=0.005)) == 100
    assert costs.epochs(config(epochs=30)) == 30


def test_failures_have_no_time() -> None:
    costs = RunCosts()
    costs.add(config(), RunRecord(failure="there is not enough memory"))
    assert costs.seconds(config()) == 0.0
