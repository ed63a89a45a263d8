"""The base class of polynomial filters."""

import torch
from torch import Tensor

from nfgnn.nn.conv.spectral_layer import SpectralLayer
from nfgnn.spectral import (
    Basis,
    LambdaMax,
    Response,
    ScaledLaplacian,
    initial_response,
    paired_terms,
)


class PolynomialFilter(SpectralLayer):
    """Base class of filters that weight the terms of a polynomial basis and mix no channels.

    Args:
        K, basis, init, alpha, self_loops, lambda_max, symmetrize: see :class:`~nfgnn.nn.NFConv`.
    """

    def __init__(
        self,
        K: int,
        basis: str | Basis,
        init: str | Response,
        alpha: float,
        self_loops: bool,
        lambda_max: LambdaMax,
        symmetrize: bool,
    ) -> None:
        super().__init__(K, basis, self_loops, lambda_max, symmetrize)
        self.init = init
        self.alpha = alpha

    def _forward(
        self,
        x: Tensor,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None,
        batch: Tensor | None,
        return_coefficients: bool,
    ) -> Tensor | tuple[Tensor, Tensor]:
        self._check_types(x, batch)
        operator = self.operator(x, edge_index, edge_weight)
        terms = self.terms(x, operator)
        out = self.filter(terms, x, operator, batch)
        if not return_coefficients:
            return out
        return out, self.node_coefficients(terms, x, operator, batch)

    def filter(
        self, terms: Tensor, x: Tensor, operator: ScaledLaplacian, batch: Tensor | None = None
    ) -> Tensor:
        """Return the weighted sum of the recurrence's terms ``[K + 1, n, channels]`` of ``x``."""
        raise NotImplementedError

    def node_coefficients(
        self, terms: Tensor, x: Tensor, operator: ScaledLaplacian, batch: Tensor | None
    ) -> Tensor:
        """Return Ψ, the coefficients of every node, ``[n, K + 1]``."""
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

    def initial_coefficients(self) -> Tensor:
        """Return the coefficients of the initial response, ``[K + 1]``."""
        return self.basis.project(initial_response(self.init, self.alpha, self.K), self.K)
