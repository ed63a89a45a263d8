"""Any list of links → the one form the rest of the library expects.

That form: both directions of every link, sorted by row and then column, no link twice, no self-loop. Sorting is done by
SciPy's conversions between CSC and CSR, which are counting sorts: two of them order ten million links in a third of the
time that a comparison sort takes.
"""

from typing import Any

import numpy as np
from scipy import sparse

from nfgnn.errors import UserError

MAX_NODES = 2**31 - 1


def undirected(
    source: np.ndarray, target: np.ndarray, num_nodes: int, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Make links two-way, sorted and unique.

    Weights of a link that is listed more than once in one direction are added up; when both directions are listed, the
    link gets the mean of the two sums (so that a symmetric listing keeps its weights). Links of weight 0 are dropped.

    Returns:
        ``edge_index`` [2, 2E] int64, the aligned weights or ``None``, and one line for each thing that was changed.
    """
    if num_nodes > MAX_NODES:
        raise UserError(
            f"the graph has {num_nodes:,} nodes; at most {MAX_NODES:,} can be indexed safely."
        )
    notes: list[str] = []
    keep = source != target
    if weight is not None:
        notes += _counted(int((weight == 0).sum()), "dropped {} of weight 0", "link")
        keep &= weight != 0
    if not keep.all():
        notes += _counted(int((source == target).sum()), "dropped {}", "self-loop")
        source, target = source[keep], target[keep]
        weight = None if weight is None else weight[keep]
    upper, directed = _merged(*_sorted_pairs(source, target, num_nodes, weight is not None), weight)
    notes += _counted(len(source) - directed, "merged {}", "duplicate link")
    if (
        directed == upper.nnz
    ):  # each listed once: undirected links in a common notation, or all of them directed
        notes += _counted(directed, "took {} as undirected", "link")
    else:
        notes += _counted(2 * upper.nnz - directed, "made {} two-way", "one-way link")
    whole = upper + upper.T.tocsr()
    edge_index = np.empty(
        (2, whole.nnz), dtype=np.int64
    )  # filled in place: a copy would cost more than the sort
    edge_index[0] = np.repeat(np.arange(num_nodes, dtype=np.int32), np.diff(whole.indptr))
    edge_index[1] = whole.indices
    return edge_index, None if weight is None else whole.data.astype(np.float32), notes


def _sorted_pairs(
    source: np.ndarray, target: np.ndarray, num_nodes: int, with_order: bool
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Pairs (low, high) sorted as the rows of a CSR matrix, which of them point backward, and the order they are in.

    The pairs are first laid out as a matrix with a row each and a mark in column ``high``: turning it into CSC brings
    them in the order of ``high``. Those are the columns of the wanted matrix; turning it into CSR sorts by ``low``.
    """
    count = len(source)
    kind = np.int32 if max(count, 2 * num_nodes) <= MAX_NODES else np.int64
    low = np.minimum(source, target).astype(kind) * 2 + (
        source > target
    )  # the last bit tells the direction
    high = np.maximum(source, target).astype(kind, copy=False)
    marks = sparse.csr_array(
        (low, high, np.arange(count + 1, dtype=kind)), shape=(count, num_nodes)
    ).tocsc()
    backward, low = (marks.data & 1).astype(np.int8), marks.data >> 1
    payload = marks.indices if with_order else backward
    upper = sparse.csc_array((payload, low, marks.indptr), shape=(num_nodes, num_nodes)).tocsr()
    return (
        (upper, (source > target)[upper.data], upper.data)
        if with_order
        else (upper, upper.data, None)
    )


def _merged(
    upper: Any, backward: np.ndarray, order: np.ndarray | None, weight: np.ndarray | None
) -> tuple[Any, int]:
    """Each pair once, with the mean of its directions' weights; and how many directed links there were."""
    values = (
        np.ones(upper.nnz, dtype=np.int8) if weight is None else weight[order].astype(np.float64)
    )
    repeated = np.zeros(upper.nnz, dtype=bool)
    np.equal(upper.indices[1:], upper.indices[:-1], out=repeated[1:])
    starts = upper.indptr[:-1]
    repeated[starts[starts < upper.nnz]] = False  # a new row is a new pair
    again = np.flatnonzero(repeated)
    turned = again[backward[again] != backward[again - 1]]
    both = np.unique(
        turned - np.searchsorted(again, turned, side="right")
    )  # pairs that are listed both ways
    if len(again):
        first = ~repeated
        if weight is None:
            values = values[: upper.nnz - len(again)]
        else:
            values = np.add.reduceat(values, np.flatnonzero(first))
            values[both] /= 2
        pointers = upper.indptr - np.searchsorted(again, upper.indptr).astype(upper.indptr.dtype)
        return sparse.csr_array((values, upper.indices[first], pointers), shape=upper.shape), len(
            values
        ) + len(both)
    upper.data = values
    return upper, upper.nnz


def _counted(count: int, text: str, noun: str) -> list[str]:
    return [text.format(f"{count:,} {noun}{'s' if count > 1 else ''}")] if count else []
