"""Coefficients that the nodes of a cluster share, shrunk to the global filter."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nfgnn.nn.head_gates.agreement_head_gate import agreement, agreement_channels
from nfgnn.nn.head_gates.head_gate import HeadGate
from nfgnn.spectral import ScaledLaplacian


class ClusterHeadGate(HeadGate):
    r"""Interpolate between the global filter and filters that clusters of nodes share.

    .. math::
        η_i = 1 + ρ_i \sum_{c=1}^{C} s_{ic} Δ_c, \qquad
        s_i = \mathrm{softmax}(W_s Z_i + b_s), \quad ρ_i = σ(w_ρ \cdot Z_i + b_ρ), \quad
        Z_i = \mathrm{ReLU}(W_1 H_i + b_1)

    H is the agreement of a node with its neighbourhood (:class:`AgreementHeadGate`), so a cluster
    has nodes in neighbourhoods of one kind. No gradient flows through H. A node has C sets of
    coefficients to choose from, and not one of its own. Δ is zero at the start, and weight decay
    draws back to it: there every coefficient is 1.
    """

    clusters = 4
    hidden_channels = 32

    def __init__(self, channels: int, K: int, heads: int) -> None:
        super().__init__(channels, K, heads)
        self.lin1 = nn.Linear(agreement_channels(K, heads), self.hidden_channels)
        self.lin2 = nn.Linear(self.hidden_channels, self.clusters + 1)
        self.delta = nn.Parameter(torch.empty(self.clusters, (K + 1) * heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.lin1.reset_parameters()
        self.lin2.reset_parameters()
        nn.init.zeros_(self.delta)

    def forward(
        self, terms: Sequence[Tensor], operator: ScaledLaplacian, batch: Tensor | None = None
    ) -> Tensor:
        """"""
        h = agreement(terms, self.heads, operator, batch).to(self.lin1.weight.dtype)
        scores: Tensor = self.lin2(self.lin1(h).relu())
        shares = scores[..., :-1].softmax(-1)
        strength = torch.sigmoid(scores[..., -1:])
        change: Tensor = (strength * shares) @ self.delta
        return 1 + change.view((*change.shape[:-1], self.K + 1, self.heads))
