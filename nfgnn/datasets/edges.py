"""Any list of links → the one form the rest of the library expects.

That form: both directions of every link, sorted by row and then column, no link twice, no self-loop. The work
is one sort of the undirected pairs and one counting pass, because a sorted upper triangle is most of a sorted
symmetric matrix already.
"""

import numpy as np
from scipy import sparse

from nfgnn.errors import UserError

#: Pairs are sorted as one 64-bit number, 2 · (low · n + high) + direction, which bounds the number of nodes.
MAX_NODES = 2_147_483_647


def undirected(
    source: np.ndarray, target: np.ndarray, num_nodes: int, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Make links two-way, sorted and unique.

    Weights of a link that is listed more than once in one direction are added up; when both directions are
    listed, the link gets the mean of the two sums (so that a symmetric listing keeps its weights). Links of
    weight 0 are dropped.

    Returns:
        ``edge_index`` [2, 2E] int64, the aligned weights or ``None``, and one line for each thing that was
        changed.
    """
    if num_nodes > MAX_NODES:
        raise UserError(f"the graph has {num_nodes:,} nodes; at most {MAX_NODES:,} can be indexed safely.")
    notes: list[str] = []
    keep = source != target
    if weight is not None:
        notes += _counted(int((weight == 0).sum()), "dropped {} of weight 0", "link")
        keep &= weight != 0
    loops = int((source == target).sum())
    if loops or not keep.all():
        notes += _counted(loops, "dropped {}", "self-loop")
        source, target = source[keep], target[keep]
        weight = None if weight is None else weight[keep]
    low, high = np.minimum(source, target), np.maximum(source, target)
    key = (low.astype(np.int64) * num_nodes + high) * 2 + (source > target)
    pair, pair_weight, directed = _unique_pairs(key, weight)
    notes += _counted(len(key) - directed, "merged {}", "duplicate link")
    if directed == len(pair):  # each listed once: undirected links in a common notation, or all of them directed
        notes += _counted(directed, "took {} as undirected", "link")
    else:
        notes += _counted(2 * len(pair) - directed, "made {} two-way", "one-way link")
    edge_index, order = _both_directions(pair // num_nodes, pair % num_nodes, num_nodes)
    return edge_index, None if pair_weight is None else pair_weight[order].astype(np.float32), notes


def _unique_pairs(key: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Sorted unique pairs, their combined weights, and how many directed links there were."""
    if weight is None:
        key.sort()
        new = _starts(key)
        directed = key[new]
        pair = directed >> 1
        return pair[_starts(pair)], None, len(directed)
    order = np.argsort(key, kind="stable")
    key, weight = key[order], weight[order].astype(np.float64)
    new = np.flatnonzero(_starts(key))
    directed, summed = key[new] >> 1, np.add.reduceat(weight, new) if len(new) else weight
    first = np.flatnonzero(_starts(directed))
    total = np.add.reduceat(summed, first) if len(first) else summed
    return directed[first], total / np.diff(np.append(first, len(directed))), len(directed)


def _starts(values: np.ndarray) -> np.ndarray:
    """True where a run of equal values begins."""
    starts = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=starts[1:])
    return starts


def _both_directions(low: np.ndarray, high: np.ndarray, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """A sorted upper triangle → the sorted symmetric edge list, and which pair each entry came from.

    In row r the entries left of the diagonal (the transposed triangle) come before those right of it, so
    every entry's place follows from two row pointers, with no second sort.
    """
    pairs = len(low)
    upper = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(low, minlength=num_nodes), out=upper[1:])
    lower = sparse.csr_array((np.arange(pairs), high, upper), shape=(num_nodes, num_nodes)).tocsc()
    lower_ptr = lower.indptr.astype(np.int64)
    lower_row = np.repeat(np.arange(num_nodes), np.diff(lower_ptr))
    edge_index = np.empty((2, 2 * pairs), dtype=np.int64)
    origin = np.empty(2 * pairs, dtype=np.int64)
    index = np.arange(pairs)
    for place, row, col, pair in (
        (index + upper[lower_row], lower_row, lower.indices, lower.data),
        (index + lower_ptr[low + 1], low, high, index),
    ):
        edge_index[0, place], edge_index[1, place], origin[place] = row, col, pair
    return edge_index, origin


def _counted(count: int, text: str, noun: str) -> list[str]:
    return [text.format(f"{count:,} {noun}{'s' if count > 1 else ''}")] if count else []
