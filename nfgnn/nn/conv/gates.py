r"""How a node's filter coefficients :math:`η_{ik}` come about: the forms of :class:`~nfgnn.nn.NFConv`.

A gate maps the terms ``[K + 1, n, channels]``, the layer's input ``[n, channels]`` and the operator to coefficients
``[K + 1, n]``. Its columns ``gamma[:, j]`` are d base filters; the gate decides how much of each a node takes. A new
form is one class and one line in ``GATES``.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from nfgnn.nn.conv.gated_sum import gated_sum
from nfgnn.spectral import ScaledLaplacian, neighbourhood_means

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": nn.functional.softplus,
    "identity": lambda h: h,
    "softmax": lambda h: h.softmax(-1),
}


class Gate(nn.Module):
    """Base of all gates: the base filters Γ and how they start.

    Args:
        channels: width of a term.
        K: degree of the filter.
        rank: number d of base filters.
        activation: name of σ; ``None`` is the form's own.
    """

    default_activation = "sigmoid"
    least_rank = 1
    rowwise = True
    """Whether a node's coefficients come from its own row of the terms alone."""

    def __init__(self, channels: int, K: int, rank: int, activation: str | None = None) -> None:
        super().__init__()
        name = activation or self.default_activation
        if name not in ACTIVATIONS:
            raise ValueError(f"unknown activation '{name}': choose one of {', '.join(ACTIVATIONS)}")
        self.channels, self.rank, self.activation = channels, rank, ACTIVATIONS[name]
        self.gamma = nn.Parameter(torch.empty(K + 1, rank))

    def reset_parameters(self, coefficients: Tensor) -> None:
        r"""Start every node at the filter with these coefficients.

        At W = 0 a node's coefficients are :math:`σ(0) \sum_j Γ_{kj}`, so Γ starts at ``coefficients / (d σ(0))``. Where
        σ(0) = 0 (tanh) no Γ gives a filter at W = 0, and Γ starts at ``coefficients / d``.
        """
        at_zero = float(self.activation(torch.zeros(self.rank))[0])
        with torch.no_grad():
            self.gamma.copy_(
                (coefficients / (self.rank * (at_zero or 1.0)))[:, None].expand_as(self.gamma)
            )
            self._reset_weight()

    def _reset_weight(self) -> None:
        raise NotImplementedError

    def forward(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        raise NotImplementedError

    def filter(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        """The terms summed under the node's coefficients, ``[n, channels]``."""
        eta: Tensor = self(terms, x, operator)
        return (eta[..., None] * terms).sum(0)

    def extra_repr(self) -> str:
        return f"{self.channels}, rank={self.rank}"


class TermGate(Gate):
    r"""Algorithm 1: from the term itself, :math:`η_{ik} = σ(X^{(k)}_i W) · Γ_k`, one W for all orders."""

    def __init__(self, channels: int, K: int, rank: int, activation: str | None = None) -> None:
        super().__init__(channels, K, rank, activation)
        self.weight = nn.Parameter(torch.empty(channels, rank))

    def _reset_weight(self) -> None:
        bound = 1 / math.sqrt(self.channels)
        self.weight.uniform_(-bound, bound)

    def forward(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        return (self.activation(terms @ self.weight) * self.gamma[:, None]).sum(-1)

    def filter(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        fused = type(self) is TermGate and self.activation is torch.sigmoid
        return (
            gated_sum(terms, self.weight, self.gamma)
            if fused
            else super().filter(terms, x, operator)
        )


class InputGate(TermGate):
    r"""The low-rank form :math:`Ψ = σ(X W)\,Γ^⊤`: from the layer's input alone, the same for all orders."""

    def forward(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        return self.gamma @ self.activation(x @ self.weight).T


class PublishedGate(Gate):
    r"""The form of the paper's published code: :math:`η_{ik} = \tfrac1d \tanh(X^{(k)}_i W_k + β_k) · Γ_k`.

    One biased projection per order. That code also draws Γ at random: ``init="random"``.
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
        self.gamma.mul_(self.rank)  # the form divides by d itself

    def forward(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        h = self.activation(torch.baddbmm(self.bias[:, None], terms, self.weight))
        return (h * self.gamma[:, None]).sum(-1) / self.rank


class AgreementGate(Gate):
    r"""From how a node stands to its neighbourhood, not from what it is.

    .. math::
        a_{ik} = \cos\big(\bar X_i, \bar X^{(k)}_i\big), \quad a_{i0} = \log(1 + d_i), \qquad
        H = [a,\, P a,\, P^2 a], \quad P = D^{-1} A, \qquad
        η_{ik} = \sum_j g_{ij} Γ_{kj}, \quad g_i = \mathrm{softmax}\big(W_2\, \mathrm{ReLU}(W_1 H_i)\big)

    where X is the layer's input, a bar takes off the mean over the channels, since a constant added to all class scores
    says nothing, and the logarithms are standardised over the nodes. Where neighbours are alike the cosines are
    positive, where they are unlike they alternate; a single node's are noisy, their averages over neighbours (P) tell
    the pattern of the region. H is taken as it is, without a gradient. W = 0, towards which weight decay draws, is one
    global filter.
    """

    default_activation = "softmax"
    least_rank = 2
    rowwise = False
    smoothing, hidden_channels = 2, 16

    def __init__(self, channels: int, K: int, rank: int, activation: str | None = None) -> None:
        super().__init__(channels, K, rank, activation)
        if rank < self.least_rank:
            raise ValueError(
                "gate 'agreement' mixes base filters, so it needs a rank of 2 or more: set rank=3"
            )
        self.lin1 = nn.Linear((K + 1) * (self.smoothing + 1), self.hidden_channels)
        self.lin2 = nn.Linear(self.hidden_channels, rank)

    def _reset_weight(self) -> None:
        self.lin1.reset_parameters()
        self.lin2.reset_parameters()

    def forward(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        assert operator is not None
        h = self.agreement(terms.detach(), x.detach(), operator)
        return self.gamma @ self.activation(self.lin2(self.lin1(h).relu())).T

    def agreement(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian) -> Tensor:
        """H, ``[n, 3 (K + 1)]``."""
        own, others = (v - v.mean(-1, keepdim=True) for v in (x, terms[1:]))
        norms = own.norm(dim=-1).clamp(min=1e-6) * others.norm(dim=-1).clamp(min=1e-6)
        cosines = (own * others).sum(-1) / norms
        degree = operator.degree.to(terms.dtype).log1p()
        degree = (degree - degree.mean()) / degree.std(unbiased=False).clamp(min=1e-6)
        a = torch.cat([degree.expand(1, -1), cosines]).T
        return neighbourhood_means(a, operator, self.smoothing).transpose(0, 1).flatten(1)


GATES: dict[str, type[Gate]] = {
    "term": TermGate,
    "input": InputGate,
    "published": PublishedGate,
    "agreement": AgreementGate,
}
