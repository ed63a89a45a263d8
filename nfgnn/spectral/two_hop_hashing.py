r"""A sketch of the two-hop neighbours of nodes: the sketches of the neighbours, added up.

The two-hop sketch of node i is the vector

.. math:: t_i = \frac{r_i}{\|r_i\|}, \qquad
          r_i = \sum_{j \in N(i)} \Big( s_j - \frac{σ_i\, e_{h(i)}}{\|S_j\|} \Big)

where :math:`s_j = S_j / \|S_j\|` is the sketch of :mod:`nfgnn.spectral.neighbour_hashing` and
:math:`S_j` the sum before it is scaled. The subtracted part is node i itself, which is a neighbour
of all its neighbours. It would be the largest entry, and a model would recognise training nodes
by it. A node without two-hop neighbours has a sketch of zeros.

Columns are independent of each other until the last scaling, so they can be computed in blocks.
"""

import torch
from torch import Tensor

from nfgnn.spectral.neighbour_hashing import hash_nodes, hashed_sums
from nfgnn.spectral.neighbour_lists import NeighbourLists

_PIECE_VALUES = 2**22  # of a sketch that are computed at a time
_ROUNDING = 1e-10  # relative error of a difference, below which it is zero


def two_hop_sketch(lists: NeighbourLists, columns: int) -> Tensor:
    """Return the two-hop sketches of all nodes of a graph, ``[n, columns]``.

    Args:
        lists: the neighbours of all nodes.
        columns: number of columns of the sketch.
    """
    scale = inverse_norms(lists, columns)
    sketch = torch.empty(len(lists.nodes), columns)
    width = max(1, _PIECE_VALUES // max(1, len(lists.nodes)))
    for first in range(0, columns, width):
        last = min(first + width, columns)
        one_hop = sketch_columns(lists, scale, columns, first, last)
        sketch[:, first:last] = two_hop_columns(lists, one_hop, scale, columns, first)
    return scaled_to_length_one(sketch)


def inverse_norms(lists: NeighbourLists, columns: int) -> Tensor:
    r"""Return :math:`1 / \|S_j\|` of some nodes in float64; 1 where the sum is zero."""
    found = [torch.empty(0, dtype=torch.float64)]
    for piece in lists.pieces(max(1, _PIECE_VALUES // columns)):
        sums = hashed_sums(piece, columns)
        found.append(1.0 / sums.square().sum(1).sqrt().clamp(min=1.0))
    return torch.cat(found)


def sketch_columns(
    lists: NeighbourLists, scale: Tensor, columns: int, first: int, last: int
) -> Tensor:
    """Return columns ``first`` to ``last`` of the sketches of some nodes in float64.

    Args:
        lists: the nodes and their neighbours.
        scale: :func:`inverse_norms` of these nodes.
        columns: number of columns of the sketch.
        first, last: the columns that are wanted.
    """
    return hashed_sums(lists, columns, first, last) * scale[:, None]


def two_hop_columns(
    lists: NeighbourLists, one_hop: Tensor, scale: Tensor, columns: int, first: int
) -> Tensor:
    r"""Return some columns of :math:`r_i` in float64, ``[b, width]``.

    Args:
        lists: the nodes and their neighbours.
        one_hop: columns from ``first`` on of the sketches of all nodes.
        scale: :func:`inverse_norms` of all nodes.
        columns: number of columns of the sketch.
        first: number of the first column.
    """
    width = one_hop.shape[1]
    parts = [one_hop.new_empty(0, width)]
    for piece in lists.pieces(max(1, _PIECE_VALUES // width)):
        found = piece.sums(one_hop)
        column, sign = hash_nodes(piece.nodes, columns)
        inside = ((column >= first) & (column < first + width)).nonzero().flatten()
        place = column[inside] - first
        own = sign[inside] * piece.sums(scale[:, None])[inside, 0]
        rest = found[inside, place] - own
        # What rounding leaves of zero would be scaled to length 1.
        rest[rest.abs() <= _ROUNDING * own.abs()] = 0.0
        found[inside, place] = rest
        parts.append(found)
    return torch.cat(parts)


def scaled_to_length_one(rows: Tensor) -> Tensor:
    """Return rows of length 1; rows of zeros stay as they are."""
    norm = rows.double().square().sum(1, keepdim=True).sqrt()
    return (rows / torch.where(norm > 0, norm, 1.0)).float()
