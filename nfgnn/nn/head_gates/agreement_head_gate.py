"""Coefficients from the agreement of a node with its neighbourhood, for several heads."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nfgnn.nn.degree_feature import degree_feature
from nfgnn.nn.head_gates.head_gate import HeadGate
from nfgnn.spectral import ScaledLaplacian, at_least_float32, neighbourhood_means

_SMOOTHING = 2


class AgreementHeadGate(HeadGate):
    r"""Weigh the orders by how similar a node is to its neighbourhood.

    .. math::
        a_{ikh} = \cos\big(X_{ih}, X^{(k)}_{ih}\big), \qquad
        H = [a,\, P a,\, P^2 a], \quad P = D^{-1} A, \qquad
        η_i = 2\,σ\big(W_2\, \mathrm{ReLU}(W_1 H_i + b_1) + b_2\big)

    where the logarithm of the degree, standardised over the nodes of a graph, joins the cosines a.
    Averages over neighbours show the pattern of the region. No gradient flows through H. With
    W₂ = 0 at the start, every coefficient is 1.
    """

    hidden_channels = 32

    def __init__(self, channels: int, K: int, heads: int) -> None:
        super().__init__(channels, K, heads)
        self.lin1 = nn.Linear(agreement_channels(K, heads), self.hidden_channels)
        self.lin2 = nn.Linear(self.hidden_channels, (K + 1) * heads)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.lin1.reset_parameters()
        nn.init.zeros_(self.lin2.weight)
        nn.init.zeros_(self.lin2.bias)

    def forward(
        self, terms: Sequence[Tensor], operator: ScaledLaplacian, batch: Tensor | None = None
    ) -> Tensor:
        """"""
        h = agreement(terms, self.heads, operator, batch).to(self.lin1.weight.dtype)
        scores: Tensor = self.lin2(self.lin1(h).relu())
        shape = (*scores.shape[:-1], self.K + 1, self.heads)
        return 2 * torch.sigmoid(scores).view(shape)


def agreement_channels(K: int, heads: int) -> int:
    """Return the number of columns of :func:`agreement`."""
    return (K * heads + 1) * (_SMOOTHING + 1)


def agreement(
    terms: Sequence[Tensor], heads: int, operator: ScaledLaplacian, batch: Tensor | None = None
) -> Tensor:
    """Return H, ``[n, 3 (K heads + 1)]``, in float32.

    Args:
        terms, operator, batch: as for :meth:`HeadGate.forward`.
        heads: number of groups of channels.
    """
    own, *others = [_by_head(term, heads) for term in terms]
    cosines = []
    for other in others:
        norms = own.norm(dim=-1).clamp(min=1e-6) * other.norm(dim=-1).clamp(min=1e-6)
        cosines.append((own * other).sum(-1) / norms)
    degree = degree_feature(operator, own.dtype, batch)
    a = torch.cat([_column_of(degree, own), *cosines], dim=-1)
    return neighbourhood_means(a, operator, _SMOOTHING).transpose(0, 1).flatten(1)


def _column_of(values: Tensor, own: Tensor) -> Tensor:
    """Return values of nodes as a column, ``[n, 1]``, mapped by ``vmap`` as the signal is."""
    return values[:, None].expand_as(own[:, :1, 0])


def _by_head(term: Tensor, heads: int) -> Tensor:
    """Return a term as ``[n, heads, channels / heads]``, centred within every head."""
    values: Tensor = at_least_float32(term.detach()).unflatten(-1, (heads, -1))
    return values - values.mean(-1, keepdim=True)
