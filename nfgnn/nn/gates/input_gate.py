"""Coefficients from the input of the layer."""

import math

import torch
from torch import Tensor, nn

from nfgnn.nn.gates.gate import Gate
from nfgnn.spectral import ScaledLaplacian


class InputGate(Gate):
    r"""The low-rank form :math:`Ψ = σ(X W)\,Γ^⊤`: from the input alone, the same for all orders."""

    def __init__(self, channels: int, K: int, rank: int, activation: str | None = None) -> None:
        super().__init__(channels, K, rank, activation)
        self.weight = nn.Parameter(torch.empty(channels, rank))

    def _reset_weight(self) -> None:
        bound = 1 / math.sqrt(self.channels)
        self.weight.uniform_(-bound, bound)

    def forward(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        return self.gamma @ self.activation(x @ self.weight).T
