r"""Classes in the i-hop neighbourhoods of all nodes, counted without an n × n matrix.

:math:`N_i(v)` are the nodes at distance exactly i from v, :math:`N_{\le i}(v)` those at distance 1
to i (the paper writes :math:`N_{<2}` for "within two hops"). The node itself belongs to neither.
With :math:`B = A + I` and ∨ for addition,

.. math:: W_0 = I, \qquad W_i = W_{i-1} B, \qquad W_i[v, u] = 1 \iff d(v, u) \le i,

so :math:`W_i Y - Y` with one-hot labels Y counts the classes within i hops, and
:math:`(W_i - W_{i-1}) Y` those at exactly i hops, because the sets are nested. The products run
over blocks of rows. The number of walks that start in a block bounds the entries of the product and
is kept below a budget: a hub of degree 20,000 gets a block of its own, and memory does not depend
on the number of edges.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import DTypeLike
from scipy import sparse
from torch import Tensor

OnRows = Callable[[int, int], None]
"""Called with the number of rows done and their total."""
_MAX_ENTRIES = 4_000_000


def class_counts(edge_index: Tensor, y: Tensor, hops: int = 1, within: bool = False) -> Tensor:
    """Return how many nodes of every class are ``hops`` steps from each node, int32 ``[n, C]``.

    Args:
        edge_index: edges in both directions, ``[2, 2E]``.
        y: labels ``[n]``, -1 where unlabelled. Unlabelled nodes are not counted, but paths lead
            through them.
        hops: the distance.
        within: count all nodes at distance 1 to ``hops``, not only those at exactly this distance.
    """
    counts = nested_class_counts(edge_index, y, hops)
    if within or hops == 1:
        return counts[-1]
    return counts[-1] - counts[-2]


def nested_class_counts(
    edge_index: Tensor, y: Tensor, hops: int, on_rows: OnRows | None = None
) -> list[Tensor]:
    """Return :func:`class_counts` within 1, 2, …, ``hops`` hops, in one pass over the graph.

    ``on_rows`` is called after every block of rows.
    """
    if hops < 1:
        raise ValueError(f"hops must be at least 1, got {hops}")
    n = len(y)
    labels = _one_hot(y)
    closed = closed_adjacency(edge_index, n)
    counts = [np.zeros(labels.shape, dtype=np.int32) for _ in range(hops)]
    for start, stop in row_blocks(closed, hops):
        own = labels[start:stop].toarray()
        reach = closed[start:stop]
        for i in range(hops):
            if i > 0:
                reach = reach @ closed
            reached = _as_counts(reach) @ labels
            counts[i][start:stop] = reached.toarray() - own
        if on_rows:
            on_rows(stop, n)
    return [torch.from_numpy(count) for count in counts]


def closed_adjacency(edge_index: Tensor, n: int) -> sparse.csr_array:
    """Return A + I as a boolean matrix, whose sums cannot overflow."""
    edges = edge_array(edge_index, n)
    loops = np.tile(np.arange(n, dtype=edges.dtype), (2, 1))
    return adjacency_matrix(np.concatenate([edges, loops], axis=1), n, bool)


def edge_array(edge_index: Tensor, n: int) -> np.ndarray:
    """Return the edges as an array, in 32 bits if the indices of twice as many nodes fit."""
    return edge_index.cpu().numpy().astype(np.int32 if n < 2**30 else np.int64)


def adjacency_matrix(edges: np.ndarray, n: int, dtype: DTypeLike) -> sparse.csr_array:
    """Return the adjacency matrix of edges ``[2, m]``; repeated edges are added up."""
    ones = np.ones(edges.shape[1], dtype=dtype)
    return sparse.csr_array((ones, (edges[0], edges[1])), shape=(n, n))


def row_blocks(
    closed: sparse.csr_array, hops: int, entries: int = _MAX_ENTRIES
) -> Iterator[tuple[int, int]]:
    """Yield blocks of rows whose power ``hops`` has about ``entries`` entries, or one row each."""
    n = closed.shape[0]
    size = np.diff(closed.indptr).astype(np.float64)
    for _ in range(hops - 1):
        # Walks of one more step, which never reach more than n nodes.
        size = np.minimum(closed @ size, n)
    ends = np.cumsum(size)
    start = 0
    while start < n:
        before = ends[start - 1] if start else 0.0
        stop = int(np.searchsorted(ends, before + entries, side="right"))
        stop = max(stop, start + 1)
        yield start, stop
        start = stop


def _one_hot(y: Tensor) -> sparse.csr_array:
    labels = y.cpu().numpy()
    classes = max(1, int(labels.max(initial=-1)) + 1)
    nodes = np.flatnonzero(labels >= 0)
    ones = np.ones(len(nodes), dtype=np.int32)
    return sparse.csr_array((ones, (nodes, labels[nodes])), shape=(len(labels), classes))


def _as_counts(reach: sparse.csr_array) -> sparse.csr_array:
    """Return a boolean matrix as integers, since a boolean product would not count."""
    ones = np.ones(reach.nnz, dtype=np.int32)
    return sparse.csr_array((ones, reach.indices, reach.indptr), shape=reach.shape)
