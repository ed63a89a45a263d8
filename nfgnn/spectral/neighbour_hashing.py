r"""A sketch of the rows of an adjacency matrix: its columns, added up in a few hashed ones.

The sketch of node i is the vector

.. math:: s_i = \Big\| \sum_{j \in N(i)} σ_j\, e_{h(j)} \Big\|^{-1}
                \sum_{j \in N(i)} σ_j\, e_{h(j)}

with a column :math:`h(j) \in \{0, …, d - 1\}` and a sign :math:`σ_j = \pm 1` that are hashes of the
number of node j (feature hashing, `Weinberger et al. <https://arxiv.org/abs/0902.2206>`_). In
expectation over the hashes, the scalar product of two sums is the number of common neighbours.
Edge weights and self-loops do not matter. A node without neighbours has a sketch of zeros.
"""

import torch
from torch import Tensor

from nfgnn.spectral.neighbour_lists import NeighbourLists

_PIECE_VALUES = 2**21  # of the sketch that are computed at a time
_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # of SplitMix64


def adjacency_sketch(indptr: Tensor, indices: Tensor, columns: int, nodes: Tensor) -> Tensor:
    """Return the sketches of some nodes, ``[len(nodes), columns]``, on the CPU.

    The sums are integers, so the result does not depend on the order of the edges.

    Args:
        indptr, indices: rows of an adjacency matrix in CSR format, one for each node of ``nodes``.
        columns: number of columns of the sketch.
        nodes: the numbers of the nodes, by which self-loops are recognised.
    """
    lists = NeighbourLists.of(nodes, indptr, indices)
    sketch = torch.empty(len(lists.nodes), columns)
    done = 0
    for piece in lists.pieces(max(1, _PIECE_VALUES // columns)):
        sums = hashed_sums(piece, columns)
        norm = sums.square().sum(1, keepdim=True).sqrt()
        last = done + len(sums)
        sketch[done:last] = sums / norm.clamp(min=1.0)
        done = last
    return sketch


def hashed_sums(
    lists: NeighbourLists, columns: int, first: int = 0, last: int | None = None
) -> Tensor:
    """Return the signs of all neighbours, added up in their columns, float64 ``[b, width]``.

    Args:
        lists: the nodes and their neighbours.
        columns: number of columns of the sketch.
        first, last: the columns that are wanted; by default all.
    """
    last = columns if last is None else last
    column, sign = hash_nodes(lists.indices, columns)
    row = lists.row
    if last - first < columns:
        inside = (column >= first) & (column < last)
        column = column[inside] - first
        sign = sign[inside]
        row = row[inside]
    width = last - first
    size = len(lists.nodes) * width
    return torch.bincount(row * width + column, sign, size).view(-1, width)


def hash_nodes(nodes: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """Return the column and the sign (float64) of nodes by their numbers."""
    bits = _times(nodes + 1, _MULTIPLIERS[0])
    bits = _times(bits ^ _shifted(bits, 30), _MULTIPLIERS[1])
    bits = _times(bits ^ _shifted(bits, 27), _MULTIPLIERS[2])
    bits = bits ^ _shifted(bits, 31)
    return _shifted(bits, 1) % columns, 1.0 - 2.0 * (bits & 1).double()


def _times(bits: Tensor, factor: int) -> Tensor:
    """Multiply modulo 2**64, in signed integers of the same bits."""
    return bits * (factor - 2**64)


def _shifted(bits: Tensor, count: int) -> Tensor:
    """Shift to the right and fill with zeros instead of the sign."""
    return torch.bitwise_and(bits >> count, 2 ** (64 - count) - 1)
