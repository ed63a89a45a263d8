"""Bernstein polynomials."""

import torch
from torch import Tensor

from nfgnn.spectral.bases.base import Basis, chebyshev_nodes
from nfgnn.spectral.bases.chebyshev import Chebyshev


class Bernstein(Basis):
    r"""Bernstein polynomials of degree K, as a change of basis of Chebyshev's.

    .. math:: b_k(t) = \binom{K}{k} u^k (1-u)^{K-k}, \quad u = \frac{1+t}{2} = \frac{\lambda}{\lambda_{\max}}

    Term k is a bump at frequency :math:`\lambda = k\lambda_{\max}/K`, all are non-negative and they add up to one, so a
    coefficient is (nearly) the filter's value there. He et al., *BernNet*, 2021.

    Written out, the terms need O(K²) products with the graph. Here :math:`b_k = \sum_j B_{kj} T_j` with a fixed
    matrix B, so K products make the Chebyshev terms and B mixes them. Every entry of B is at most 1 in size,
    because :math:`|b_k| \le 1`: the change in this direction is well conditioned.
    """

    def table(self, K: int) -> Tensor:
        return Chebyshev().table(K)

    def mixing(self, K: int) -> Tensor:
        t = chebyshev_nodes(K + 1)
        u, k = (1 + t[:, None]) / 2, torch.arange(K + 1, dtype=torch.float64)
        log_binomial = (
            torch.lgamma(torch.tensor(K + 1.0).double())
            - torch.lgamma(k + 1)
            - torch.lgamma(K - k + 1)
        )
        values = log_binomial.exp().round() * u**k * (1 - u) ** (K - k)
        # Discrete orthogonality at the nodes: B[k, j] = (2 - [j = 0]) / (K + 1) · Σ_i b_k(t_i) T_j(t_i), exactly.
        chebyshev = Chebyshev().evaluate(t, K)
        chebyshev[:, 1:] *= 2
        return values.T @ chebyshev / (K + 1)
