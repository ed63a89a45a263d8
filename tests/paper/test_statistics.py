"""Statistics against SciPy, and Holm's correction against what defines it: closed testing."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t, ttest_rel, wilcoxon

from nfgnn.paper.statistics import Comparison, holm, paired, paired_overlapping, signed_rank
from nfgnn.training.metrics import summarise

scores = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30)


@given(scores)
def test_the_paired_test_is_scipys(pairs: list[tuple[float, float]]) -> None:
    a, b = zip(*pairs)
    found = paired(a, b)
    spread = max(x - y for x, y in pairs) - min(x - y for x, y in pairs)
    if spread < 1e-6:  # too near to a constant for floating point
        return
    expected = ttest_rel(a, b)
    low, high = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-300)
    assert found.difference == pytest.approx((low + high) / 2, abs=1e-12)
    assert found.ci95 == pytest.approx((high - low) / 2, rel=1e-6)
    assert found.runs == len(a)


def test_constant_differences_and_single_runs() -> None:
    assert paired([0.5, 0.6], [0.5, 0.6]) == Comparison(0.0, 0.0, 1.0, 2)
    assert paired([0.5, 0.75], [0.25, 0.5]) == Comparison(0.25, 0.0, 0.0, 2)
    assert paired([0.5], [0.25]) == Comparison(0.25, None, None, 1)


def test_the_test_for_overlapping_splits_by_hand() -> None:
    a, b = [0.52, 0.55, 0.53, 0.58], [0.50, 0.51, 0.52, 0.53]
    # Differences 0.02, 0.04, 0.01, 0.05: mean 0.03, variance 0.001 / 3.
    statistic = 0.03 / ((1 / 4 + 0.5) * 0.001 / 3) ** 0.5
    assert paired_overlapping(a, b, 0.5) == pytest.approx(2 * t.sf(statistic, 3))
    # Without overlap it is the paired test.
    assert paired_overlapping(a, b, 0.0) == pytest.approx(paired(a, b).p)
    assert paired_overlapping(a, a, 0.5) == 1.0
    assert paired_overlapping([0.5, 0.75], [0.25, 0.5], 0.5) == 0.0


def test_the_signed_rank_test_is_scipys() -> None:
    a, b = [0.52, 0.55, 0.53, 0.58, 0.40], [0.50, 0.51, 0.52, 0.53, 0.43]
    assert signed_rank(a, b) == pytest.approx(wilcoxon([2, 4, 1, 5, -3]).pvalue)
    assert signed_rank(a, a) == 1.0
    # All ten pairs in one direction: 2 of 1024 sign patterns are as extreme.
    assert signed_rank([0.1 * i for i in range(1, 11)], [0.0] * 10) == pytest.approx(2 / 1024)


def test_the_interval_is_students() -> None:
    values = [0.1, 0.4, 0.35, 0.8]
    low, high = t.interval(0.95, 3, loc=sum(values) / 4, scale=summarise(values)["std"] / 2)
    assert summarise(values)["ci95"] == pytest.approx((high - low) / 2)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_closed_test_with_bonferroni(p: list[float]) -> None:
    """A hypothesis is rejected iff Bonferroni's test rejects every set that contains it."""
    indices = range(len(p))
    for i in indices:
        sets = [s for size in indices for s in combinations(indices, size + 1) if i in s]
        closed = max(min(1.0, len(s) * min(p[j] for j in s)) for s in sets)
        assert holm(p)[i] == pytest.approx(closed)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
