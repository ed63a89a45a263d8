"""Coefficients from attention of a node to its own terms."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nfgnn.nn.degree_feature import degree_feature
from nfgnn.nn.head_gates.head_gate import HeadGate
from nfgnn.spectral import ScaledLaplacian, sum_precision


class AttentionHeadGate(HeadGate):
    r"""Weigh the orders by attention over the K + 1 terms of a node.

    .. math::
        η_{ikh} = (K + 1)\,\mathrm{softmax}_k\Big(\frac{q_{ih} \cdot κ_{ikh}}{\sqrt d}
        + β_{kh}\Big), \qquad q_i = W_q\, [X_i,\, \log(1 + d_i)] + b_q, \qquad
        κ_{ik} = W_κ X^{(k)}_i

    The query comes from the node and its degree, whose logarithm is standardised over the nodes of
    a graph. The keys come from the terms, so a score compares a node with its neighbourhood in a
    learned metric. The coefficients of a node and head have the mean 1. With :math:`W_q`,
    :math:`b_q` and β zero at the start, all of them are 1.
    """

    key_channels = 8

    def __init__(self, channels: int, K: int, heads: int) -> None:
        super().__init__(channels, K, heads)
        self.query = nn.Linear(channels + 1, heads * self.key_channels)
        self.key = nn.Linear(channels, heads * self.key_channels, bias=False)
        self.beta = nn.Parameter(torch.empty(K + 1, heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.query.weight)
        nn.init.zeros_(self.query.bias)
        self.key.reset_parameters()
        nn.init.zeros_(self.beta)

    def forward(
        self, terms: Sequence[Tensor], operator: ScaledLaplacian, batch: Tensor | None = None
    ) -> Tensor:
        """"""
        x = terms[0]
        degree = degree_feature(operator, sum_precision(x), batch)
        column = degree.to(x.dtype)[:, None].expand_as(x[:, :1])
        query = self._by_head(self.query(torch.cat([x, column], dim=-1)))
        scores = []
        for term in terms:
            key = self._by_head(self.key(term))
            scores.append((query * key).sum(-1) * self.key_channels**-0.5)
        weights = (torch.stack(scores, dim=-2) + self.beta).softmax(-2)
        return (self.K + 1) * weights

    def _by_head(self, values: Tensor) -> Tensor:
        heads: Tensor = values.unflatten(-1, (self.heads, self.key_channels))
        return heads
