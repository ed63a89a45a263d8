r"""A sketch of the rows of an adjacency matrix: its columns, added up in a few hashed ones.

The sketch of node i is the vector

.. math:: s_i = \Big\| \sum_{j \in N(i)} σ_j\, e_{h(j)} \Big\|^{-1}
                \sum_{j \in N(i)} σ_j\, e_{h(j)}

with a column :math:`h(j) \in \{0, …, d - 1\}` and a sign :math:`σ_j = \pm 1` that are hashes of the
number of node j (feature hashing, `Weinberger et al. <https://arxiv.org/abs/0902.2206>`_). In
expectation over the hashes, the scalar product of two sums is the number of common neighbours.
Edge weights and self-loops do not matter. A node without neighbours has a sketch of zeros.
"""

import numpy as np
import torch
from torch import Tensor

_PIECE_VALUES = 2**21  # of the sketch that are computed at a time


def adjacency_sketch(indptr: Tensor, indices: Tensor, columns: int, nodes: Tensor) -> Tensor:
    """Return the sketches of some nodes, ``[len(nodes), columns]``, on the CPU.

    The sums are integers, so the result does not depend on the order of the edges.

    Args:
        indptr, indices: rows of an adjacency matrix in CSR format, one for each node of ``nodes``.
        columns: number of columns of the sketch.
        nodes: the numbers of the nodes, by which self-loops are recognised.
    """
    bounds = indptr.cpu().numpy()
    neighbours = indices.cpu().numpy()
    numbers = nodes.cpu().numpy()
    sketch = torch.empty(len(numbers), columns)
    step = max(1, _PIECE_VALUES // columns)
    for first in range(0, len(numbers), step):
        last = min(first + step, len(numbers))
        counts = np.diff(bounds[first : last + 1])
        row = np.repeat(np.arange(last - first), counts)
        target = neighbours[bounds[first] : bounds[last]]
        column, sign = hash_nodes(target, columns)
        sign[target == numbers[first:last][row]] = 0.0
        size = (last - first) * columns
        sums = np.bincount(row * columns + column, sign, size).reshape(-1, columns)
        norm = np.sqrt((sums**2).sum(1, keepdims=True))
        sketch[first:last] = torch.from_numpy(sums / np.maximum(norm, 1.0))
    return sketch


def hash_nodes(nodes: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the column and the sign of nodes by their numbers."""
    # The finaliser of SplitMix64; the arithmetic is modulo 2**64.
    bits = (nodes.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    column = ((bits >> np.uint64(1)) % np.uint64(columns)).astype(np.int64)
    sign = 1.0 - 2.0 * (bits & np.uint64(1)).astype(np.float64)
    return column, sign
