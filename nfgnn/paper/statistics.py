r"""What many runs say together: intervals, paired tests, and their correction for being many.

The mean and its 95 % interval are :func:`nfgnn.training.metrics.summarise`'s (Student's t).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nfgnn.training.metrics import summarise


@dataclass(frozen=True)
class Comparison:
    """Two models on the same splits: mean difference, half-width of its 95 % interval, two-sided p."""

    difference: float
    ci95: float | None
    p: float | None
    runs: int


def paired(a: Sequence[float], b: Sequence[float]) -> Comparison:
    r"""The paired t-test of ``a`` against ``b``, which are scores on the same splits in the same order.

    With the differences :math:`d_i = a_i - b_i` of n runs, :math:`t = \bar d \sqrt n / s_d` is compared with Student's
    distribution of n - 1 degrees of freedom. Where all differences are equal the test says all or nothing: p = 1 if
    they are zero, else p = 0. One run has no p.
    """
    from scipy.stats import t

    assert len(a) == len(b), "paired scores come from the same splits"
    difference = summarise([x - y for x, y in zip(a, b)])
    mean, std, n = difference["mean"], difference["std"], len(a)
    if std is None:
        return Comparison(mean, None, None, n)
    if std < 1e-12:
        return Comparison(mean, 0.0, 1.0 if abs(mean) < 1e-12 else 0.0, n)
    return Comparison(mean, difference["ci95"], float(2 * t.sf(abs(mean) * n**0.5 / std, n - 1)), n)


def holm(p: Sequence[float]) -> list[float]:
    r"""Holm's correction of m p-values: :math:`\tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})`.

    Rejecting where :math:`\tilde p \le α` keeps the probability of any false rejection among the m tests below α.
    """
    corrected, largest = [0.0] * len(p), 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        largest = max(largest, min(1.0, (len(p) - rank) * p[i]))
        corrected[i] = largest
    return corrected
