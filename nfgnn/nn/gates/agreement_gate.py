"""Coefficients from the agreement of a node with its neighbourhood."""

import torch
from torch import Tensor, nn

from nfgnn.nn.degree_feature import degree_feature
from nfgnn.nn.gates.gate import Gate
from nfgnn.spectral import ScaledLaplacian, at_least_float32, neighbourhood_means


class AgreementGate(Gate):
    r"""Choose the filter of a node by how it relates to its neighbourhood.

    .. math::
        a_{ik} = \cos\big(\bar X_i, \bar X^{(k)}_i\big), \quad a_{i0} = \log(1 + d_i), \qquad
        H = [a,\, P a,\, P^2 a], \quad P = D^{-1} A, \qquad
        η_{ik} = \sum_j g_{ij} Γ_{kj}, \quad
        g_i = \mathrm{softmax}\big(W_2\, \mathrm{ReLU}(W_1 H_i)\big)

    X is the input of the layer. A bar subtracts the mean over the channels, because a constant
    added to all class scores has no effect. The logarithms are standardised over the nodes of a
    graph, and zero if all degrees are equal. In half precision, H is computed in float32. The
    cosines are positive where neighbours are similar and alternate where they are dissimilar.
    Those of a single node are noisy; their averages over neighbours (P) show the pattern of the
    region. No gradient flows through H. At W = 0, which weight decay favours, all nodes have the
    same filter.
    """

    default_activation = "softmax"
    least_rank = 2
    rowwise = False
    smoothing = 2
    hidden_channels = 16

    def __init__(self, channels: int, K: int, rank: int, activation: str | None = None) -> None:
        super().__init__(channels, K, rank, activation)
        self.lin1 = nn.Linear((K + 1) * (self.smoothing + 1), self.hidden_channels)
        self.lin2 = nn.Linear(self.hidden_channels, rank)

    def _reset_weight(self) -> None:
        self.lin1.reset_parameters()
        self.lin2.reset_parameters()

    def forward(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        assert operator is not None
        return self.coefficients(terms, x, operator, None)

    def coefficients(
        self, terms: Tensor, x: Tensor, operator: ScaledLaplacian, batch: Tensor | None
    ) -> Tensor:
        terms = at_least_float32(terms.detach())
        h = self.agreement(terms, at_least_float32(x.detach()), operator, batch).to(x.dtype)
        return self.gamma @ self.activation(self.lin2(self.lin1(h).relu())).T

    def agreement(
        self, terms: Tensor, x: Tensor, operator: ScaledLaplacian, batch: Tensor | None = None
    ) -> Tensor:
        """Return H, ``[n, 3 (K + 1)]``."""
        own = x - x.mean(-1, keepdim=True)
        others = terms[1:] - terms[1:].mean(-1, keepdim=True)
        norms = own.norm(dim=-1).clamp(min=1e-6) * others.norm(dim=-1).clamp(min=1e-6)
        cosines = (own * others).sum(-1) / norms
        # The cosine of X with itself is 1 for every node, so the degree takes its place.
        degree = degree_feature(operator, terms.dtype, batch)
        a = torch.cat([degree.expand(1, -1), cosines]).T
        return neighbourhood_means(a, operator, self.smoothing).transpose(0, 1).flatten(1)
