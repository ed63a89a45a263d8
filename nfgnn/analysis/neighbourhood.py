r"""Who lives around a node: the classes of its i-hop neighbourhoods, counted without an n × n matrix.

:math:`N_i(v)` are the nodes at distance exactly i of v, :math:`N_{\le i}(v)` those at distance 1 to i (the paper writes
:math:`N_{<2}` for "within two hops"). The node itself belongs to neither. With :math:`B = A + I` and ∨ for addition,

.. math:: W_0 = I, \qquad W_i = W_{i-1} B, \qquad W_i[v, u] = 1 \iff d(v, u) \le i,

so the classes within i hops are counted by :math:`W_i Y - Y` with one-hot labels Y, and those at exactly i hops by
:math:`(W_i - W_{i-1}) Y`, because the sets are nested. The products run over blocks of rows. A block is cut so that the
number of walks that start in it, which bounds the entries of the product, stays below a budget: a hub of degree 20,000
gets a block of its own, and memory does not depend on the number of edges.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

OnRows = Callable[[int, int], None]
"""Told how many rows of how many are done."""
_ENTRIES = 4_000_000


def class_counts(
    edge_index: Tensor,
    y: Tensor,
    hops: int = 1,
    within: bool = False,
    on_rows: OnRows | None = None,
) -> Tensor:
    """How many nodes of every class are ``hops`` steps away from each node, int32 ``[n, classes]``.

    Args:
        edge_index: links in both directions, ``[2, 2E]``.
        y: labels ``[n]``, -1 where there is none; such nodes are not counted, but paths lead through them.
        hops: the distance.
        within: count all nodes at distance 1 to ``hops``, not only those at exactly this distance.
        on_rows: called after every block of rows.
    """
    counts = nested_class_counts(edge_index, y, hops, on_rows)
    return counts[-1] if within or hops == 1 else counts[-1] - counts[-2]


def nested_class_counts(
    edge_index: Tensor, y: Tensor, hops: int, on_rows: OnRows | None = None
) -> list[Tensor]:
    """:func:`class_counts` within 1, 2, …, ``hops`` hops, in one pass over the graph."""
    if hops < 1:
        raise ValueError(f"hops must be at least 1, got {hops}")
    n, classes = len(y), max(1, int(y.max()) + 1 if len(y) else 1)
    closed, labels = closed_adjacency(edge_index, n), _one_hot(y, classes)
    counts = [np.zeros((n, classes), dtype=np.int32) for _ in range(hops)]
    for start, stop in row_blocks(closed, hops):
        reach = closed[start:stop]
        for i in range(hops):
            reach = reach if i == 0 else reach @ closed
            counts[i][start:stop] = (_as_counts(reach) @ labels).toarray() - labels[
                start:stop
            ].toarray()
        if on_rows:
            on_rows(stop, n)
    return [torch.from_numpy(count) for count in counts]


def closed_adjacency(edge_index: Tensor, n: int) -> sparse.csr_array:
    """A + I as a matrix of truth values: sums of them cannot overflow."""
    row, col = edge_index.cpu().numpy().astype(np.int32 if n < 2**31 else np.int64)
    own = np.arange(n, dtype=row.dtype)
    ends = np.concatenate([row, own]), np.concatenate([col, own])
    matrix = sparse.coo_array((np.ones(len(ends[0]), dtype=bool), ends), shape=(n, n)).tocsr()
    matrix.sum_duplicates()
    return matrix


def row_blocks(
    closed: sparse.csr_array, hops: int, entries: int = _ENTRIES
) -> Iterator[tuple[int, int]]:
    """Blocks of rows of ``closed`` whose power ``hops`` has at most about ``entries`` entries each, or one row."""
    n = closed.shape[0]
    size = np.diff(closed.indptr).astype(np.float64)
    for _ in range(hops - 1):
        size = np.minimum(
            closed @ size, n
        )  # walks of one more step; never more than n different ends
    ends = np.cumsum(size)
    start = 0
    while start < n:
        before = ends[start - 1] if start else 0.0
        stop = max(start + 1, int(np.searchsorted(ends, before + entries, side="right")))
        yield start, stop
        start = stop


def _one_hot(y: Tensor, classes: int) -> sparse.csr_array:
    labels = y.cpu().numpy()
    nodes = np.flatnonzero(labels >= 0)
    ones = np.ones(len(nodes), dtype=np.int32)
    return sparse.csr_array((ones, (nodes, labels[nodes])), shape=(len(labels), classes))


def _as_counts(reach: sparse.csr_array) -> sparse.csr_array:
    ones = np.ones(reach.nnz, dtype=np.int32)
    return sparse.csr_array((ones, reach.indices, reach.indptr), shape=reach.shape)
