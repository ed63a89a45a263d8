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
    bounds = indptr.cpu().long()
    neighbours = indices.cpu()
    nodes = nodes.cpu()
    sketch = torch.empty(len(nodes), columns)
    step = max(1, _PIECE_VALUES // columns)
    for first in range(0, len(nodes), step):
        last = min(first + step, len(nodes))
        counts = bounds[first : last + 1].diff()
        row = torch.repeat_interleave(torch.arange(last - first), counts)
        target = neighbours[bounds[first] : bounds[last]].long()
        column, sign = hash_nodes(target, columns)
        sign[target == nodes[first:last][row]] = 0.0
        size = (last - first) * columns
        sums = torch.bincount(row * columns + column, sign, size).view(-1, columns)
        norm = sums.square().sum(1, keepdim=True).sqrt()
        sketch[first:last] = sums / norm.clamp(min=1.0)
    return sketch


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
