"""What all polynomial filters share: the degree, the basis, the operator."""

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


class PolynomialConv(nn.Module):
    """Base of the filters: subclasses say how the terms are weighted (:meth:`filter`).

    Args:
        K, basis, init, alpha, self_loops, lambda_max: of :class:`~nfgnn.nn.NFConv`.
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
        self.K, self.basis = K, resolve_basis(basis)
        self.init, self.alpha = init, alpha
        self.self_loops, self.lambda_max = self_loops, lambda_max

    def initial_coefficients(self) -> Tensor:
        """The initial response in the basis, ``[K + 1]``."""
        return self.basis.project(initial_response(self.init, self.alpha, self.K), self.K)

    def operator(
        self, x: Tensor, edge_index: Tensor | ScaledLaplacian, edge_weight: Tensor | None
    ) -> ScaledLaplacian:
        """The operator that the filter is a polynomial of."""
        return scaled_laplacian(
            edge_index, edge_weight, x.shape[-2], self.self_loops, self.lambda_max
        )

    def filter(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian) -> Tensor:
        """The weighted sum of the recurrence's terms ``[K + 1, n, channels]``."""
        raise NotImplementedError

    def forward_pair(
        self,
        x: Tensor,
        held: Tensor,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The filtered signal, and another one without a gradient, by one recurrence."""
        operator = self.operator(x, edge_index, edge_weight)
        terms, held_terms = paired_terms(x, held, operator, self.basis, self.K)
        with torch.no_grad():
            held_out = self.filter(held_terms, held, operator)
        return self.filter(terms, x, operator), held_out
