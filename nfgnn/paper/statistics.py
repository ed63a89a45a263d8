"""Paired tests, and their corrections for overlapping splits and for being many.

The mean and its 95 % interval come from :func:`nfgnn.training.metrics.summarise` (Student's t).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nfgnn.training import summarise


@dataclass(frozen=True)
class Comparison:
    """Two models on the same splits: difference, half-width of its 95 % interval, two-sided p."""

    difference: float
    ci95: float | None
    p: float | None
    runs: int


def paired(a: Sequence[float], b: Sequence[float]) -> Comparison:
    r"""Return the paired t-test of ``a`` against ``b``: scores on the same splits in one order.

    With the differences :math:`d_i = a_i - b_i` of n runs, :math:`t = \bar d \sqrt n / s_d` is
    compared with Student's distribution with n - 1 degrees of freedom. If all differences are
    equal, p is 1 where they are zero and 0 elsewhere. A single run has no p.
    """
    from scipy.special import stdtr

    assert len(a) == len(b), "paired scores must come from the same splits"
    runs = len(a)
    summary = summarise([x - y for x, y in zip(a, b)])
    mean = summary["mean"]
    std = summary["std"]
    if std is None:
        return Comparison(mean, None, None, runs)
    if std < 1e-12:
        return Comparison(mean, 0.0, 1.0 if abs(mean) < 1e-12 else 0.0, runs)
    p = 2 * stdtr(runs - 1, -abs(mean) * runs**0.5 / std)
    return Comparison(mean, summary["ci95"], float(p), runs)


def paired_overlapping(a: Sequence[float], b: Sequence[float], test_to_train: float) -> float:
    r"""Return the p-value of the paired t-test, corrected for splits that share nodes.

    Training sets of several splits of one graph overlap, so the differences are correlated and
    :func:`paired` is too optimistic. Nadeau and Bengio (2003, Inference for the Generalization
    Error) replace the variance :math:`s_d^2 / n` of the mean by
    :math:`(1/n + n_{test} / n_{train})\, s_d^2`.

    Args:
        a, b: scores on the same splits in one order, at least two of them.
        test_to_train: number of test nodes per training node.
    """
    from scipy.special import stdtr

    assert len(a) == len(b), "paired scores must come from the same splits"
    runs = len(a)
    summary = summarise([x - y for x, y in zip(a, b)])
    if summary["std"] < 1e-12:
        return 1.0 if abs(summary["mean"]) < 1e-12 else 0.0
    deviation = summary["std"] * (1 / runs + test_to_train) ** 0.5
    return float(2 * stdtr(runs - 1, -abs(summary["mean"]) / deviation))


def signed_rank(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, 1 if all pairs are equal."""
    from scipy.stats import wilcoxon

    # Scores have six decimals, so differences that only differ by rounding errors are ties.
    differences = [round(x - y, 9) for x, y in zip(a, b)]
    if not any(differences):
        return 1.0
    return float(wilcoxon(differences).pvalue)


def holm(p: Sequence[float]) -> list[float]:
    r"""Return Holm's correction of m p-values.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})

    Rejecting where :math:`\tilde p \le α` keeps the probability of any false rejection among the m
    tests below α.
    """
    corrected = [0.0] * len(p)
    largest = 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        largest = max(largest, min(1.0, (len(p) - rank) * p[i]))
        corrected[i] = largest
    return corrected


def p_value_text(p: float | None) -> str:
    """Return a p value as tables show it."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
