"""Powers of the normalised adjacency."""

import torch
from torch import Tensor

from nfgnn.spectral.bases.base import Basis


class Monomial(Basis):
    r"""Powers of the normalised adjacency.

    .. math:: p_k(t) = (-t)^k, \qquad
              p_k(\tilde L) = (-\tilde L)^k = \hat A^k \text{ for } \lambda_{\max} = 2

    With the minus sign the terms are the powers of :math:`\hat A`, which the literature calls the
    monomial basis: walks of length k. Chien et al., *Adaptive universal generalized PageRank graph
    neural network*, 2021.
    """

    def table(self, K: int) -> Tensor:
        return torch.tensor([[-1.0, 0.0, 0.0]], dtype=torch.float64).repeat(K, 1)
