"""Accuracy by local homophily: are nodes of every neighbourhood served alike?"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ByInterval:
    """Equal intervals of h from 0 to 1; the last one includes 1."""

    limits: Tensor
    """``[intervals + 1]``."""
    nodes: Tensor
    """Number of nodes in each, int64."""
    accuracy: Tensor
    """Share of them that is right, float64; NaN where there is no node."""


def accuracy_by_homophily(correct: Tensor, h: Tensor, intervals: int = 5) -> ByInterval:
    """The accuracy of nodes by the interval of their local homophily; nodes without h are left out.

    Args:
        correct: whether each node is classified rightly, boolean ``[n]``.
        h: local homophily of the same nodes, NaN where undefined.
        intervals: number of equal intervals of [0, 1].
    """
    defined = ~h.isnan()
    # A share such as 3/5 may fall a rounding error short of the limit that it is.
    which = (h[defined] * intervals + 1e-9).floor().long().clamp(max=intervals - 1)
    nodes = torch.bincount(which, minlength=intervals)
    right = torch.bincount(which[correct[defined]], minlength=intervals)
    return ByInterval(
        torch.linspace(0, 1, intervals + 1, dtype=torch.float64), nodes, right.double() / nodes
    )
