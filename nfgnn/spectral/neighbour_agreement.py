r"""How similar the features of a node are to those of its neighbours.

.. math:: c_i = \frac{1}{d_i} \sum_{j \in N(i)} \cos(x_i, x_j)
              = \frac{1}{d_i} \Big\langle u_i, \sum_{j \in N(i)} u_j \Big\rangle,
          \qquad u_i = \frac{x_i}{\|x_i\|}

Edge weights and self-loops do not matter. The value is 0 for nodes without neighbours, and the
cosine with a node whose features are all zero is 0.
"""

import torch.nn.functional as F
from torch import Tensor

from nfgnn.spectral.neighbour_lists import NeighbourLists

_PIECE_VALUES = 2**21  # of the sums over neighbours that are computed at a time


def neighbour_cosine(lists: NeighbourLists, x: Tensor) -> Tensor:
    """Return the mean cosine of some nodes with their neighbours, float64 ``[b]``.

    Args:
        lists: the nodes and their neighbours.
        x: features of all nodes, ``[n, features]``.
    """
    unit = F.normalize(x.cpu().double(), eps=1e-30)
    return cosine_sums(lists, unit) / lists.counts.clamp(min=1)


def cosine_sums(lists: NeighbourLists, unit: Tensor) -> Tensor:
    r"""Return :math:`\langle u_i, \sum_j u_j \rangle` over some columns of u, ``[b]``."""
    found = unit.new_zeros(len(lists.nodes))
    done = 0
    for piece in lists.pieces(max(1, _PIECE_VALUES // max(1, unit.shape[1]))):
        last = done + len(piece.nodes)
        found[done:last] = (unit[piece.nodes] * piece.sums(unit)).sum(1)
        done = last
    return found
