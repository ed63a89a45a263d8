"""One polynomial filter for all nodes."""

import torch
from torch import Tensor, nn

from nfgnn.nn.conv.polynomial_filter import PolynomialFilter
from nfgnn.spectral import (
    Basis,
    LambdaMax,
    Response,
    ScaledLaplacian,
    mix,
    mixing_matrix,
)


class PolyConv(PolynomialFilter):
    r"""One polynomial filter for the whole graph: the node-oriented filter "without NF".

    .. math:: Z = \sum_{k=0}^{K} γ_k\, p_k(\tilde L)\, X

    The channels are not mixed. :class:`~nfgnn.nn.NFConv` has a filter for every node.

    Args:
        K (int): degree of the filter: K + 1 coefficients and K sparse products. (default: ``10``)
        basis, init, alpha, self_loops, lambda_max, symmetrize: see :class:`~nfgnn.nn.NFConv`.
        learnable (bool): whether the coefficients are trained. (default: ``True``)

    Shapes:
        - **input:** node features ``(n, channels)``, edge indices ``(2, edges)``, edge weights
          ``(edges)`` *(optional)*, the graph of every node in a batch of graphs ``(n)``
          *(optional, has no effect)*
        - **output:** ``(n, channels)``; with ``return_coefficients`` also Ψ, ``(n, K + 1)``, all
          rows equal

    Terms and weighted sum are computed in float32 if x is bfloat16 or float16. Under autocast, the
    layer returns float32. See :class:`~nfgnn.nn.NFConv` for ``torch.compile`` and ``edge_weight``.
    """

    def __init__(
        self,
        *,
        K: int = 10,
        basis: str | Basis = "chebyshev",
        init: str | Response = "ppr",
        alpha: float = 0.1,
        self_loops: bool = False,
        lambda_max: LambdaMax = 2.0,
        learnable: bool = True,
        symmetrize: bool = False,
    ) -> None:
        super().__init__(K, basis, init, alpha, self_loops, lambda_max, symmetrize)
        self.gamma = nn.Parameter(torch.empty(K + 1), requires_grad=learnable)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Restore the initial response."""
        with torch.no_grad():
            self.gamma.copy_(self.initial_coefficients())

    @property
    def precision(self) -> torch.dtype:
        return self.gamma.dtype

    def coefficients(self) -> Tensor:
        """Return the coefficients in the basis, ``[K + 1]``."""
        return self.gamma

    def filter(
        self, terms: Tensor, x: Tensor, operator: ScaledLaplacian, batch: Tensor | None = None
    ) -> Tensor:
        gamma = self.mixed_coefficients(terms)
        return torch.einsum("k,knc->nc", gamma, terms).to(x.dtype)

    def mixed_coefficients(self, terms: Tensor) -> Tensor:
        """Return the coefficients of the recurrence's terms, ``[K + 1]``."""
        gamma = self.coefficients().to(terms.dtype)
        # With one filter for all nodes, mixing the K + 1 coefficients replaces mixing the terms.
        if torch.compiler.is_compiling():
            return gamma if self._mixing is None else mix(gamma, self._mixing, transposed=True)
        mixing = mixing_matrix(self.basis, self.K, gamma.dtype, gamma.device)
        return gamma if mixing is None else gamma @ mixing

    def node_coefficients(
        self, terms: Tensor, x: Tensor, operator: ScaledLaplacian, batch: Tensor | None
    ) -> Tensor:
        return self.coefficients().expand(x.shape[0], -1)

    def filter_rows(self, rows: Tensor) -> Tensor:
        return torch.einsum("k,bkc->bc", self.coefficients(), rows)

    def row_coefficients(self, rows: Tensor) -> Tensor:
        return self.coefficients().expand(rows.shape[0], -1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(K={self.K}, basis={self.basis})"
