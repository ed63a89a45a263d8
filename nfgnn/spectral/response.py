r"""Frequency responses that a filter may start from.

An initial filter is said as a response g, and :meth:`Basis.project` turns it into coefficients, so that a name means
the same filter in every basis. The variable is that of :class:`~nfgnn.spectral.bases.Basis`, t from -1 (lowest frequency) to 1;
:math:`s = -t` is the eigenvalue of :math:`\hat A` when :math:`\lambda_{\max} = 2`.
"""

from torch import Tensor, randn

from nfgnn.spectral.bases.base import Response


def all_pass(t: Tensor) -> Tensor:
    """g = 1: the filter starts as the identity."""
    return t * 0 + 1


def low_pass(t: Tensor) -> Tensor:
    """g = ((1 + s)/2)²: 1 at the lowest frequency, 0 at the highest."""
    return ((1 - t) / 2) ** 2


def high_pass(t: Tensor) -> Tensor:
    """g = ((1 - s)/2)²: the mirror image of ``low_pass``."""
    return ((1 + t) / 2) ** 2


def band_stop(t: Tensor) -> Tensor:
    """g = s²: both ends of the spectrum pass, the middle does not (two-step walks)."""
    return t * t


def ppr(alpha: float, K: int) -> Response:
    r"""Personalised PageRank, cut at K steps: :math:`\sum_{k<K} α(1-α)^k s^k + (1-α)^K s^K`, GPRGNN's start."""
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha}")

    def response(t: Tensor) -> Tensor:
        s = -t
        value = (1 - alpha) ** K * s**K
        for k in range(K):
            value = value + alpha * (1 - alpha) ** k * s**k
        return value

    return response


def random(t: Tensor) -> Tensor:
    """Independent normal values at the nodes of the projection: a filter without any preference.

    Between the nodes such a filter swings the more the higher K is, and in the monomial and the Bernstein basis its
    coefficients become huge (10⁵ at K = 20): for comparisons at moderate K, not for use.
    """
    return randn(t.shape, dtype=t.dtype)


RESPONSES: dict[str, Response] = {
    "all-pass": all_pass,
    "low-pass": low_pass,
    "high-pass": high_pass,
    "band-stop": band_stop,
    "random": random,
}


def initial_response(init: str | Response, alpha: float, K: int) -> Response:
    """The response named ``init``: one of ``RESPONSES``, ``"ppr"`` (with ``alpha``, degree ``K``), or as it is."""
    if callable(init):
        return init
    if init == "ppr":
        return ppr(alpha, K)
    if init not in RESPONSES:
        raise ValueError(
            f"unknown initial response '{init}': choose one of {', '.join([*RESPONSES, 'ppr'])}"
        )
    return RESPONSES[init]
