"""One polynomial filter for all nodes."""

import torch
from torch import Tensor, nn

from nfgnn.nn.conv.polynomial_filter import PolynomialFilter
from nfgnn.spectral import (
    Basis,
    LambdaMax,
    Response,
    ScaledLaplacian,
    mixing_matrix,
    recurrence_terms,
)


class PolyConv(PolynomialFilter):
    r"""One polynomial filter for the whole graph: the node-oriented filter "without NF".

    .. math:: Z = \sum_{k=0}^{K} γ_k\, p_k(\tilde L)\, X

    The channels are not mixed. :class:`~nfgnn.nn.NFConv` has a filter for every node.

    Args:
        K (int): degree of the filter: K + 1 coefficients and K sparse products. (default: ``10``)
        basis, init, alpha, self_loops, lambda_max: see :class:`~nfgnn.nn.NFConv`.
        learnable (bool): whether the coefficients are trained. (default: ``True``)

    Shapes:
        - **input:** node features ``(n, channels)``, edge indices ``(2, edges)``, edge weights
          ``(edges)`` *(optional)*
        - **output:** ``(n, channels)``; with ``return_coefficients`` also Ψ, ``(n, K + 1)``, all
          rows equal
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
        """Restore the initial response."""
        with torch.no_grad():
            self.gamma.copy_(self.initial_coefficients())

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
        if not return_coefficients:
            return out
        return out, self.coefficients().expand(x.shape[0], -1)

    def coefficients(self) -> Tensor:
        """Return the coefficients in the basis, ``[K + 1]``."""
        return self.gamma

    def filter(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian) -> Tensor:
        gamma = self.coefficients()
        # With one filter for all nodes, mixing the K + 1 coefficients replaces mixing the terms.
        mixing = mixing_matrix(self.basis, self.K, gamma.dtype, gamma.device)
        if mixing is not None:
            gamma = gamma @ mixing
        return torch.einsum("k,knc->nc", gamma, terms)

    def filter_rows(self, rows: Tensor) -> Tensor:
        return torch.einsum("k,bkc->bc", self.coefficients(), rows)

    def row_coefficients(self, rows: Tensor) -> Tensor:
        return self.coefficients().expand(rows.shape[0], -1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(K={self.K}, basis={self.basis})"
