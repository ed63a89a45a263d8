"""One global polynomial filter."""

import torch
from torch import Tensor, nn

from nfgnn.nn.conv.polynomial import PolynomialConv
from nfgnn.spectral import (
    Basis,
    LambdaMax,
    Response,
    ScaledLaplacian,
    mixing_matrix,
    recurrence_terms,
)


class PolyConv(PolynomialConv):
    r"""One polynomial filter for the whole graph, the node-oriented filter "without NF".

    .. math:: Z = \sum_{k=0}^{K} γ_k\, p_k(\tilde L)\, X

    The channels are not mixed. See :class:`~nfgnn.nn.NFConv` for the filter of every node's own.

    Args:
        K (int): degree of the filter, so K + 1 coefficients and K sparse products. (default: ``10``)
        basis (str or Basis): name of the polynomial basis, see :data:`nfgnn.spectral.bases.BASES`. (default: ``"chebyshev"``)
        init (str or callable): frequency response of the initial filter, see :mod:`nfgnn.spectral.response`: a name
            (``"ppr"``, ``"all-pass"``, ``"low-pass"``, ``"high-pass"``, ``"band-stop"``, ``"random"``) or a function of
            t. (default: ``"ppr"``)
        alpha (float): restart probability of ``init="ppr"``. (default: ``0.1``)
        self_loops (bool): normalise A + I in place of A. (default: ``False``)
        lambda_max (float or "estimate"): largest eigenvalue assumed of the Laplacian. (default: ``2.0``)
        learnable (bool): whether the coefficients are trained. (default: ``True``)

    Shapes:
        - **input:** node features ``(n, channels)``, edge indices ``(2, edges)``, edge weights ``(edges)`` *(optional)*
        - **output:** ``(n, channels)``; with ``return_coefficients`` also Ψ, ``(n, K + 1)``, all rows equal
    """

    def __init__(
        self,
        K: int = 10,
        basis: str | Basis = "chebyshev",
        init: str | Response = "ppr",
        alpha: float = 0.1,
        self_loops: bool = False,
        lambda_max: LambdaMax = 2.0,
        learnable: bool = True,
    ) -> None:
        super().__init__(K, basis, init, alpha, self_loops, lambda_max)
        self.gamma = nn.Parameter(torch.empty(K + 1), requires_grad=learnable)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to the initial response."""
        with torch.no_grad():
            self.gamma.copy_(self.initial_coefficients())

    def coefficients(self) -> Tensor:
        """The coefficients in the basis, ``[K + 1]``."""
        return self.gamma

    def filter(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian) -> Tensor:
        """The sum of the recurrence's terms ``[K + 1, n, channels]`` under the coefficients.

        One filter for all nodes: changing the basis of its K + 1 coefficients spares changing that of the terms.
        """
        gamma = self.coefficients()
        mixing = mixing_matrix(self.basis, self.K, gamma.dtype, gamma.device)
        return torch.einsum("k,knc->nc", gamma if mixing is None else gamma @ mixing, terms)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
        return_coefficients: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """"""
        operator = self.operator(x, edge_index, edge_weight)
        out = self.filter(recurrence_terms(x, operator, self.basis, self.K), x, operator)
        return (out, self.coefficients().expand(x.shape[0], -1)) if return_coefficients else out

    def __repr__(self) -> str:
        return f"{type(self).__name__}(K={self.K}, basis={self.basis})"
