"""Convert an edge list to the form that the rest of the library expects.

That form has both directions of every edge, sorted by row and then by column, without duplicates
and self-loops. SciPy's conversions between CSC and CSR do the sorting. They are counting sorts, and
two of them order ten million edges in a third of the time that a comparison sort takes.
"""

from typing import Any

import numpy as np
from scipy import sparse

from nfgnn.data.messages import counted
from nfgnn.errors import UserError

MAX_NODES = 2**31 - 1
MAX_WEIGHT = float(np.finfo(np.float32).max)


def check_weights(weight: np.ndarray, num_edges: int, where: str, first: int = 0) -> np.ndarray:
    """Return weights as float64 [E]; refuse values outside of 0 to ``MAX_WEIGHT``.

    Args:
        weight: one weight per listed edge.
        num_edges: number of listed edges.
        where: the place that error messages name.
        first: number of the first of these edges, for error messages.
    """
    weight = weight.reshape(-1).astype(np.float64)
    if len(weight) != num_edges:
        raise UserError(
            f"{where}: there are {len(weight):,} weights for {num_edges:,} edges; "
            "give every edge one."
        )
    invalid = ~((weight >= 0) & (weight <= MAX_WEIGHT))  # also true for NaN
    if invalid.any():
        edge = int(np.flatnonzero(invalid)[0])
        raise UserError(
            f"{where}: the weight of edge {first + edge} (counted from 0) is {weight[edge]}; "
            f"weights must be positive and at most {MAX_WEIGHT:g} (float32)."
        )
    return weight


def round_weights(total: np.ndarray) -> np.ndarray:
    """Return sums of weights in float32; refuse those that exceed it."""
    if len(total) and total.max() > MAX_WEIGHT:
        raise UserError(
            f"the weights of an edge that is listed more than once add up to {total.max():g}; "
            f"at most {MAX_WEIGHT:g} is supported: scale the weights."
        )
    return total.astype(np.float32)


def undirected(
    source: np.ndarray, target: np.ndarray, num_nodes: int, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Make edges undirected, sorted and unique.

    Weights of an edge that is listed more than once in one direction are added up. When both
    directions are listed, the edge gets the mean of the two sums, so that a symmetric list keeps
    its weights. Edges are dropped if their weight is 0, also if it only becomes 0 in float32.

    Returns:
        ``edge_index`` [2, 2E] int64, the aligned weights or ``None``, and one note per change.
    """
    if num_nodes > MAX_NODES:
        raise UserError(f"the graph has {num_nodes:,} nodes; at most {MAX_NODES:,} are supported.")
    notes: list[str] = []
    keep = source != target
    if weight is not None:
        single = weight.astype(np.float32)
        zeros = int((weight == 0).sum())
        vanishing = int((single == 0).sum()) - zeros
        if zeros:
            notes.append(f"dropped {counted(zeros, 'edge')} with weight 0")
        if vanishing:
            notes.append(f"dropped {counted(vanishing, 'edge')} whose weight is 0 in float32")
        keep &= single != 0
    if not keep.all():
        loops = int((source == target).sum())
        if loops:
            notes.append(f"dropped {counted(loops, 'self-loop')}")
        source = source[keep]
        target = target[keep]
        weight = None if weight is None else weight[keep]
    pairs, backward, order = _sorted_pairs(source, target, num_nodes, weight is not None)
    if weight is not None:
        weight = weight[order]
    upper, num_directed = _merge(pairs, backward, weight)
    notes += _notes(len(source), num_directed, upper.nnz)
    whole = upper + upper.T.tocsr()
    if weight is not None:
        weight = round_weights(whole.data)
    # Filled in place: a copy would cost more than the sort.
    edge_index = np.empty((2, whole.nnz), dtype=np.int64)
    nodes = np.arange(num_nodes, dtype=np.int32)
    edge_index[0] = np.repeat(nodes, np.diff(whole.indptr))
    edge_index[1] = whole.indices
    return edge_index, weight, notes


def _notes(num_listed: int, num_directed: int, num_undirected: int) -> list[str]:
    notes = []
    if num_listed > num_directed:
        notes.append(f"merged {counted(num_listed - num_directed, 'duplicate edge')}")
    added = 2 * num_undirected - num_directed
    if num_directed == num_undirected > 0:
        # Every edge is listed once: this is how undirected edges are usually written.
        notes.append(f"read {counted(num_directed, 'edge')} as undirected")
    elif added:
        notes.append(f"added the reverse of {counted(added, 'directed edge')}")
    return notes


def _sorted_pairs(
    source: np.ndarray, target: np.ndarray, num_nodes: int, with_order: bool
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Sort the pairs (low, high) as the rows of a CSR matrix, duplicates included.

    The pairs are first stored as a matrix with one row per pair and an entry in column ``high``.
    Its conversion to CSC sorts them by ``high``. These are the columns of the wanted matrix, and
    its conversion to CSR sorts them by ``low``.

    Returns:
        The matrix, whether each of its entries goes from the higher to the lower node, and, if
        ``with_order``, the place of each entry in the list.
    """
    count = len(source)
    dtype = np.int32 if max(count, 2 * num_nodes) <= MAX_NODES else np.int64
    reversed_ends = source > target
    # The last bit stores the direction, so that it is sorted along.
    low = np.minimum(source, target).astype(dtype) * 2 + reversed_ends
    high = np.maximum(source, target).astype(dtype, copy=False)
    indptr = np.arange(count + 1, dtype=dtype)
    by_high = sparse.csr_array((low, high, indptr), shape=(count, num_nodes)).tocsc()
    # The order is only needed to find weights. One byte per edge is sorted faster than four.
    if with_order:
        payload = by_high.indices
    else:
        payload = (by_high.data & 1).astype(np.int8)
    parts = (payload, by_high.data >> 1, by_high.indptr)
    pairs = sparse.csc_array(parts, shape=(num_nodes, num_nodes)).tocsr()
    if with_order:
        return pairs, reversed_ends[pairs.data], pairs.data
    return pairs, pairs.data, None


def _merge(pairs: Any, backward: np.ndarray, weight: np.ndarray | None) -> tuple[Any, int]:
    """Merge equal pairs and average the weights of their two directions.

    Returns:
        The matrix of unique pairs and the number of different directed edges.
    """
    repeated = np.zeros(pairs.nnz, dtype=bool)
    np.equal(pairs.indices[1:], pairs.indices[:-1], out=repeated[1:])
    row_starts = pairs.indptr[:-1]
    repeated[row_starts[row_starts < pairs.nnz]] = False  # a new row is a new pair
    again = np.flatnonzero(repeated)
    if weight is None:
        values = np.ones(pairs.nnz - len(again), dtype=np.int8)
    else:
        values = weight.astype(np.float64)
    if len(again) == 0:
        pairs.data = values
        return pairs, pairs.nnz
    first = ~repeated
    turned = again[backward[again] != backward[again - 1]]
    # The pairs that are listed in both directions, by their number among the unique ones.
    both = np.unique(turned - np.searchsorted(again, turned, side="right"))
    if weight is not None:
        values = np.add.reduceat(values, np.flatnonzero(first))
        values[both] /= 2
    # Every row starts as much earlier as there are repeated pairs before it.
    num_dropped = np.searchsorted(again, pairs.indptr)
    indptr = pairs.indptr - num_dropped.astype(pairs.indptr.dtype)
    unique = sparse.csr_array((values, pairs.indices[first], indptr), shape=pairs.shape)
    return unique, len(values) + len(both)
