"""Chebyshev polynomials of the first kind."""

import torch
from torch import Tensor

from nfgnn.spectral.bases.base import Basis


class Chebyshev(Basis):
    r"""Chebyshev polynomials of the first kind, the basis of the paper.

    .. math:: T_0 = 1, \quad T_1(t) = t, \quad T_{k+1}(t) = 2t\,T_k(t) - T_{k-1}(t)

    so :math:`T_k(\cos\theta) = \cos k\theta`. All terms stay within :math:`[-1, 1]`, which keeps
    high orders stable in float32. Defferrard et al., *Convolutional neural networks on graphs with
    fast localized spectral filtering*, 2016.
    """

    def table(self, K: int) -> Tensor:
        table = torch.tensor([[2.0, 0.0, -1.0]], dtype=torch.float64).repeat(K, 1)
        table[:1] = torch.tensor([1.0, 0.0, 0.0])
        return table
