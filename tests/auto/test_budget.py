"""Budgets of a search."""

import json
import math
import time
from pathlib import Path

import pytest

from nfgnn.auto.budget import Budget
from nfgnn.errors import UserError


def test_a_budget_is_time_or_a_number_of_runs() -> None:
    for seconds, runs in ((None, None), (60.0, 3), (0.5, None), (math.inf, None), (None, 0)):
        with pytest.raises(UserError):
            Budget(seconds, runs)


def test_shares_divide_the_time_between_loading_and_reserve() -> None:
    now = time.monotonic()
    budget = Budget(100.0, None, started=now - 10)
    assert budget.seconds_before == pytest.approx(10, abs=1)
    # The reserve is 55 % of the time until now.
    assert budget.training_seconds == pytest.approx(100 - 5.5 - 10, abs=1)
    assert budget.end(0.0) == pytest.approx(now, abs=1)
    assert budget.end() == pytest.approx(now - 10 + 94.5, abs=1)
    assert budget.end(0.5) == pytest.approx(now + 0.5 * 84.5, abs=1)


def test_runs_have_no_deadline() -> None:
    budget = Budget(None, 7)
    assert budget.end(0.1) == math.inf
    budget.runs_planned += 3
    assert budget.runs_left == 4


def test_time_before_an_interruption_counts(tmp_path: Path) -> None:
    clock = tmp_path / "clock.json"
    Budget(100.0, None, time.monotonic() - 30, clock).save_clock()
    assert json.loads(clock.read_text())["seconds"] == pytest.approx(30, abs=1)
    resumed = Budget(100.0, None, clock=clock)
    assert resumed.elapsed() == pytest.approx(30, abs=1)
    assert resumed.seconds_before == pytest.approx(30, abs=1)
