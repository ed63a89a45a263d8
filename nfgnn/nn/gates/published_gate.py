"""The gate of the published code."""

import math

import torch
from torch import Tensor, nn

from nfgnn.nn.gates.gate import Gate
from nfgnn.spectral import ScaledLaplacian


class PublishedGate(Gate):
    r"""The gate of the published code, with a projection and a bias for every order.

    .. math:: η_{ik} = \tfrac1d \tanh(X^{(k)}_i W_k + β_k) · Γ_k

    That code also draws Γ at random, which is ``init="random"`` here.
    """

    default_activation = "tanh"

    def __init__(self, channels: int, K: int, rank: int, activation: str | None = None) -> None:
        super().__init__(channels, K, rank, activation)
        self.weight = nn.Parameter(torch.empty(K + 1, channels, rank))
        self.bias = nn.Parameter(torch.empty(K + 1, rank))

    def _reset_weight(self) -> None:
        bound = 1 / math.sqrt(self.channels)
        self.weight.uniform_(-bound, bound)
        self.bias.uniform_(-bound, bound)
        self.gamma.mul_(self.rank)  # forward divides by d

    def forward(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        h = self.activation(torch.baddbmm(self.bias[:, None], terms, self.weight))
        return (h * self.gamma[:, None]).sum(-1) / self.rank
