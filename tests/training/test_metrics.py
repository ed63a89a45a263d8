"""The summary of many runs."""

import numpy as np
import pytest
from scipy import stats

from nfgnn.training import summarise


def test_mean_and_interval_are_those_of_scipy() -> None:
    values = [0.7, 0.8, 0.75, 0.9]
    summary = summarise(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert summary["mean"] == pytest.approx(np.mean(values))
    assert summary["ci95"] == pytest.approx((high - low) / 2)
    assert summary["std"] == pytest.approx(np.std(values, ddof=1))
    assert summary["values"] == values


def test_a_single_value_has_no_interval() -> None:
    assert summarise([0.5])["ci95"] is None
