r"""Frequency responses that a filter can start from.

:meth:`Basis.project` turns a response g into coefficients, so that a name means the same filter in
every basis. The variable is that of :class:`~nfgnn.spectral.Basis`: t from -1 (lowest frequency) to
1 (highest). :math:`s = -t` is the eigenvalue of :math:`\hat A` for :math:`\lambda_{\max} = 2`.
"""

from torch import Tensor, randn

from nfgnn.spectral.bases.base import Response


def all_pass(t: Tensor) -> Tensor:
    """g = 1: the identity."""
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
    r"""Return personalised PageRank with K steps, which GPRGNN starts from.

    .. math:: g = \sum_{k<K} α(1-α)^k s^k + (1-α)^K s^K
    """
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
    """Independent normal values at the nodes of the projection: a filter without preference.

    For comparisons at moderate K. Between the nodes such a filter oscillates more the larger K is,
    and its coefficients in the monomial and the Bernstein basis become huge (10⁵ at K = 20).
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
    """Return the response named ``init``.

    Args:
        init: a name in ``RESPONSES``, ``"ppr"``, or a response, which is returned as it is.
        alpha, K: of :func:`ppr`.
    """
    if callable(init):
        return init
    if init == "ppr":
        return ppr(alpha, K)
    if init not in RESPONSES:
        names = ", ".join([*RESPONSES, "ppr"])
        raise ValueError(f"unknown initial response '{init}': choose one of {names}")
    return RESPONSES[init]
