"""Algorithm 1's coefficients, for several heads."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nfgnn.nn.head_gates.head_gate import HeadGate
from nfgnn.spectral import ScaledLaplacian


class TermHeadGate(HeadGate):
    r"""Every term chooses its own coefficient, as in Algorithm 1 of the paper.

    .. math:: η_{ikh} = 2\,σ\big(X^{(k)}_i W_h\big)\, Γ_{kh}

    with W = 0 and Γ = 1 at the start, where every coefficient is 1.
    """

    def __init__(self, channels: int, K: int, heads: int) -> None:
        super().__init__(channels, K, heads)
        self.weight = nn.Parameter(torch.empty(channels, heads))
        self.gamma = nn.Parameter(torch.empty(K + 1, heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)
        nn.init.ones_(self.gamma)

    def forward(
        self, terms: Sequence[Tensor], operator: ScaledLaplacian, batch: Tensor | None = None
    ) -> Tensor:
        """"""
        scores = torch.stack([term @ self.weight for term in terms], dim=-2)
        return 2 * torch.sigmoid(scores) * self.gamma
