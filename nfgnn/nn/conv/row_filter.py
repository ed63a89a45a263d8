r"""A filter applied to rows of terms that were computed before.

Once the terms :math:`X^{(k)} = p_k(\tilde L)\,X` are there, a filter needs no graph: node i is filtered by its own row
:math:`(X^{(0)}_i, …, X^{(K)}_i)` alone. So rows can be stored, shuffled and cut into batches like any table.
"""

import torch
from torch import Tensor

from nfgnn.nn.conv.gates import TermGate
from nfgnn.nn.conv.nf_conv import NFConv
from nfgnn.nn.conv.poly_conv import PolyConv
from nfgnn.spectral.response import all_pass


def filter_rows(conv: NFConv | PolyConv, rows: Tensor) -> Tensor:
    r"""The filtered signal :math:`Z_i = \sum_k η_{ik} X^{(k)}_i`, ``[b, channels]``.

    Args:
        conv: the filter, node-oriented or global.
        rows: ``[b, K + 1, channels]``, rows of :func:`nfgnn.spectral.polynomial_terms` in the basis of ``conv``.
    """
    if isinstance(conv, NFConv):
        return torch.bmm(row_coefficients(conv, rows).unsqueeze(1), rows).squeeze(1)
    return torch.einsum("k,bkc->bc", conv.coefficients(), rows)


def row_coefficients(conv: NFConv | PolyConv, rows: Tensor) -> Tensor:
    """The coefficients η of every row, ``[b, K + 1]``; a global filter has the same for all."""
    if isinstance(conv, PolyConv):
        return conv.coefficients().expand(rows.shape[0], -1)
    gate = conv.gate
    if (
        type(gate) is TermGate
    ):  # Algorithm 2 in the layout that the rows have: the form below would copy them
        return (gate.activation(rows @ gate.weight) * gate.gamma).sum(-1)
    eta: Tensor = gate(rows.transpose(0, 1), _signal(conv, rows))
    return eta.T


def _signal(conv: NFConv, rows: Tensor) -> Tensor:
    """What the terms are terms of: the first one, or for a basis without a constant term the sum that makes one."""
    if conv.basis.mixing(conv.K) is None:
        return rows[:, 0]
    weights = conv.basis.project(all_pass, conv.K).to(rows)
    return torch.einsum("k,bkc->bc", weights, rows)
