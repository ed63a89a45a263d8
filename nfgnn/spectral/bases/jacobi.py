"""Jacobi polynomials, and Legendre polynomials as a special case."""

from math import inf

import torch
from torch import Tensor

from nfgnn.spectral.bases.base import Basis


class Jacobi(Basis):
    r"""Jacobi polynomials :math:`P_k^{(a,b)}(t)`.

    They are orthogonal for the weight :math:`(1-t)^a (1+t)^b`.

    With :math:`s = 2k + a + b` the recurrence from k to k + 1 has

    .. math::
        a_k = \frac{(s+1)(s+2)}{2(k+1)(k+a+b+1)}, \quad
        b_k = \frac{(a^2-b^2)(s+1)}{2(k+1)(k+a+b+1)\,s}, \quad
        c_k = -\frac{(k+a)(k+b)(s+2)}{(k+1)(k+a+b+1)\,s}

    and :math:`P_1(t) = \tfrac{a-b}{2} + \tfrac{a+b+2}{2}\,t`. Choose a large *b* for signals at low
    frequencies (t = -1) and a large *a* for signals at high ones. JacobiConv writes its filter in
    :math:`\hat A = -\tilde L`; its (a, b) is (b, a) here, up to the sign of odd terms. Wang and
    Zhang, *How powerful are spectral graph neural networks*, 2022.

    Args:
        a: exponent of :math:`1 - t`, larger than -1.
        b: exponent of :math:`1 + t`, larger than -1.
    """

    def __init__(self, a: float = 1.0, b: float = 1.0) -> None:
        if not (-1 < a < inf and -1 < b < inf):
            raise ValueError(
                f"Jacobi(a, b) needs finite a > -1 and b > -1, got a = {a} and b = {b}"
            )
        self.a = float(a)
        self.b = float(b)

    def table(self, K: int) -> Tensor:
        a = self.a
        b = self.b
        # Row 0 on its own: for a + b = 0 the general formula divides by s = 0.
        rows = [((a + b + 2) / 2, (a - b) / 2, 0.0)]
        for k in range(1, K):
            s = 2 * k + a + b
            denominator = 2 * (k + 1) * (k + a + b + 1) * s
            a_k = s * (s + 1) * (s + 2) / denominator
            b_k = (a * a - b * b) * (s + 1) / denominator
            c_k = -2 * (k + a) * (k + b) * (s + 2) / denominator
            rows.append((a_k, b_k, c_k))
        return torch.tensor(rows[:K], dtype=torch.float64).reshape(K, 3)

    def __str__(self) -> str:
        return f"jacobi({_exact(self.a)}, {_exact(self.b)})"

    def __repr__(self) -> str:
        return f"Jacobi(a={_exact(self.a)}, b={_exact(self.b)})"


def _exact(number: float) -> str:
    """Return a number as the shortest text that stands for it."""
    return repr(number).removesuffix(".0")


class Legendre(Jacobi):
    r"""Legendre polynomials: Jacobi polynomials with a = b = 0, orthogonal for a constant weight.

    .. math:: (k+1)\,P_{k+1}(t) = (2k+1)\,t\,P_k(t) - k\,P_{k-1}(t)
    """

    def __init__(self) -> None:
        super().__init__(0.0, 0.0)

    def __str__(self) -> str:
        return "legendre"

    def __repr__(self) -> str:
        return "Legendre()"
