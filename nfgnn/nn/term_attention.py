"""Attention of a node over the terms of its row."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.argument_checks import check_heads


class TermAttention(nn.Module):
    r"""Attention over the terms of a row, as in `SAGN <https://arxiv.org/abs/2104.09376>`_.

    .. math::
        H_{ik} = X^{(k)}_i W_k, \qquad
        α_{ik} = \mathrm{softmax}_k\, \mathrm{LeakyReLU}(a^\top H_{i0} + b^\top H_{ik}), \qquad
        O_i = \sum_{k=0}^{K} α_{ik} H_{ik}

    Every order has its own linear map. With several heads, the columns of H are divided among them,
    and every head has its own a, b and α.

    Args:
        in_channels (int): features of a term.
        out_channels (int): columns of the output, a multiple of ``heads``.
        K (int): there are K + 1 terms.
        heads (int): number of heads. (default: ``1``)

    Shapes:
        - **input:** terms ``[b, K + 1, in_channels]``
        - **output:** ``[b, out_channels]``
    """

    negative_slope = 0.2

    def __init__(self, in_channels: int, out_channels: int, K: int, heads: int = 1) -> None:
        super().__init__()
        check_heads(heads, out_channels=out_channels)
        self.heads = heads
        self.weight = nn.Parameter(torch.empty(K + 1, in_channels, out_channels))
        self.own = nn.Parameter(torch.empty(heads, out_channels // heads))
        self.other = nn.Parameter(torch.empty(heads, out_channels // heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.weight.shape[1])  # that of torch.nn.Linear
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.xavier_uniform_(self.own)
        nn.init.xavier_uniform_(self.other)

    def forward(self, terms: Tensor) -> Tensor:
        """"""
        hidden = self._hidden(terms)
        weights = self._weights(hidden)
        return torch.einsum("bkh,bkhc->bhc", weights, hidden).flatten(1)

    def weights(self, terms: Tensor) -> Tensor:
        """Return α, ``[b, K + 1, heads]``."""
        return self._weights(self._hidden(terms))

    def _hidden(self, terms: Tensor) -> Tensor:
        """Return H, ``[b, K + 1, heads, out_channels / heads]``."""
        hidden = torch.einsum("bkf,kfh->bkh", terms, self.weight)
        return hidden.view(*hidden.shape[:2], self.heads, -1)

    def _weights(self, hidden: Tensor) -> Tensor:
        own = (hidden[:, :1] * self.own).sum(-1)
        other = (hidden * self.other).sum(-1)
        return F.leaky_relu(own + other, self.negative_slope).softmax(1)

    def __repr__(self) -> str:
        orders, inputs, outputs = self.weight.shape
        return f"TermAttention({inputs}, {outputs}, K={orders - 1}, heads={self.heads})"
