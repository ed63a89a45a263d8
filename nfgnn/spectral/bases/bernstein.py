"""Bernstein polynomials."""

import torch
from torch import Tensor

from nfgnn.spectral.bases.base import Basis, chebyshev_nodes
from nfgnn.spectral.bases.chebyshev import Chebyshev


class Bernstein(Basis):
    r"""Bernstein polynomials of degree K, as combinations of Chebyshev polynomials.

    .. math:: b_k(t) = \binom{K}{k} u^k (1-u)^{K-k}, \quad
              u = \frac{1+t}{2} = \frac{\lambda}{\lambda_{\max}}

    Term k has its maximum at frequency :math:`\lambda = k\lambda_{\max}/K`. The terms are
    non-negative and add up to one, so a coefficient is close to the filter's value there. He et
    al., *BernNet*, 2021.

    As written, the terms need O(K²) products with the graph. Here :math:`b_k = \sum_j B_{kj} T_j`
    with a fixed matrix B: K products make the Chebyshev terms, and B mixes them. No entry of B
    exceeds 1 in size, because :math:`|b_k| \le 1`, so this direction is well conditioned.
    """

    def table(self, K: int) -> Tensor:
        return Chebyshev().table(K)

    def mixing(self, K: int) -> Tensor:
        t = chebyshev_nodes(K + 1)
        u = (1 + t[:, None]) / 2
        k = torch.arange(K + 1, dtype=torch.float64)
        log_factorial = torch.lgamma(torch.tensor(K + 1.0).double())
        log_binomial = log_factorial - torch.lgamma(k + 1) - torch.lgamma(K - k + 1)
        # Binomial coefficients are whole numbers; rounding removes the error of lgamma.
        values = log_binomial.exp().round() * u**k * (1 - u) ** (K - k)
        # Discrete orthogonality at the nodes t_i is exact:
        # B[k, j] = (2 - [j = 0]) / (K + 1) · Σ_i b_k(t_i) T_j(t_i).
        chebyshev = Chebyshev().evaluate(t, K)
        chebyshev[:, 1:] *= 2
        return values.T @ chebyshev / (K + 1)
