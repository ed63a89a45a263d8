"""Coefficients from the terms themselves."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from nfgnn.nn.gates.gate import Gate
from nfgnn.nn.gates.term_filter import term_filter
from nfgnn.spectral import ScaledLaplacian


class TermGate(Gate):
    r"""The gate of Algorithm 1: :math:`η_{ik} = σ(X^{(k)}_i W) · Γ_k`, one W for all orders."""

    def __init__(self, channels: int, K: int, rank: int, activation: str | None = None) -> None:
        super().__init__(channels, K, rank, activation)
        self.weight = nn.Parameter(torch.empty(channels, rank))

    def _reset_weight(self) -> None:
        bound = 1 / math.sqrt(self.channels)
        self.weight.uniform_(-bound, bound)

    def forward(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        return (self.activation(terms @ self.weight) * self.gamma[:, None]).sum(-1)

    def filter(
        self, terms: Tensor, x: Tensor, operator: ScaledLaplacian, batch: Tensor | None = None
    ) -> Tensor:
        # The fused form has the derivative of the sigmoid built in. Compilers fuse the plain one.
        if self.activation is torch.sigmoid and not torch.compiler.is_compiling():
            return term_filter(terms, self.weight, self.gamma)
        return super().filter(terms, x, operator, batch)

    def row_coefficients(self, rows: Tensor, signal: Callable[[Tensor], Tensor]) -> Tensor:
        # In the layout of the rows: transposing them, as the default does, would copy them.
        return (self.activation(rows @ self.weight) * self.gamma).sum(-1)
