"""The base class of polynomial filters."""

import torch
from torch import Tensor, nn

from nfgnn.spectral import (
    Basis,
    LambdaMax,
    Response,
    ScaledLaplacian,
    initial_response,
    paired_terms,
    resolve_basis,
    scaled_laplacian,
)


class PolynomialFilter(nn.Module):
    """Base class of filters that weight the terms of a polynomial basis.

    Args:
        K, basis, init, alpha, self_loops, lambda_max: see :class:`~nfgnn.nn.NFConv`.
    """

    def __init__(
        self,
        K: int,
        basis: str | Basis,
        init: str | Response,
        alpha: float,
        self_loops: bool,
        lambda_max: LambdaMax,
    ) -> None:
        super().__init__()
        if K < 0:
            raise ValueError(f"K is the degree of the filter and must not be negative, got {K}")
        self.K = K
        self.basis = resolve_basis(basis)
        self.init = init
        self.alpha = alpha
        self.self_loops = self_loops
        self.lambda_max = lambda_max

    def reset_parameters(self) -> None:
        raise NotImplementedError

    def filter(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian) -> Tensor:
        """Return the weighted sum of the recurrence's terms ``[K + 1, n, channels]`` of ``x``."""
        raise NotImplementedError

    def filter_rows(self, rows: Tensor) -> Tensor:
        r"""Return the filtered signal :math:`Z_i = \sum_k η_{ik} X^{(k)}_i`, ``[b, channels]``.

        Given the terms, a node is filtered by its own row, without the graph. So rows can be
        stored, shuffled and divided into batches.

        Args:
            rows: ``[b, K + 1, channels]``, rows of :func:`~nfgnn.spectral.polynomial_terms`.
        """
        raise NotImplementedError

    def row_coefficients(self, rows: Tensor) -> Tensor:
        """Return the coefficients of rows of terms, ``[b, K + 1]``."""
        raise NotImplementedError

    def forward_pair(
        self,
        x: Tensor,
        constant: Tensor,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Filter two signals, the second one without gradient, by one recurrence."""
        operator = self.operator(x, edge_index, edge_weight)
        terms, constant_terms = paired_terms(x, constant, operator, self.basis, self.K)
        with torch.no_grad():
            constant_out = self.filter(constant_terms, constant, operator)
        return self.filter(terms, x, operator), constant_out

    def operator(
        self, x: Tensor, edge_index: Tensor | ScaledLaplacian, edge_weight: Tensor | None
    ) -> ScaledLaplacian:
        """Return the operator that the filter is a polynomial of."""
        num_nodes = x.shape[-2]
        return scaled_laplacian(
            edge_index, edge_weight, num_nodes, self.self_loops, self.lambda_max
        )

    def initial_coefficients(self) -> Tensor:
        """Return the coefficients of the initial response, ``[K + 1]``."""
        return self.basis.project(initial_response(self.init, self.alpha, self.K), self.K)
