r"""Do nodes with similar neighbourhoods learn similar filters? Coefficient distance by Jaccard distance.

For pairs of nodes, :math:`J(i, j) = 1 - |N_1(i) ∩ N_1(j)| / |N_1(i) ∪ N_1(j)|` and
:math:`d(Ψ_i, Ψ_j) = \lVert Ψ_i - Ψ_j \rVert_2`; the mean of d is taken per interval of J, for pairs of the same label
and of different labels. J = 1 (no common neighbour), which nearly all pairs have, is an interval of its own. Two nodes
without any neighbours have no J and are left out, as are nodes without a label.

All pairs of a node are visited at once, in blocks of rows. When there are more nodes than ``anchors``, only the pairs
of randomly chosen anchor nodes are visited. Means per interval are then ratios of two sums over anchors, whose standard
error is stated (linearised ratio estimator with the correction for drawing without replacement).
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from torch import Tensor

LIMITS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
JACCARD_INTERVALS = ("[0, 0.2)", "[0.2, 0.4)", "[0.4, 0.6)", "[0.6, 0.8)", "[0.8, 1)", "1")
_CELLS = 4_000_000


@dataclass(frozen=True)
class DistanceByJaccard:
    """Rows: same label, different labels; columns: :data:`JACCARD_INTERVALS`."""

    mean: np.ndarray
    """Mean of d, NaN where there is no pair."""
    error: np.ndarray
    """Its standard error from the choice of anchors; 0 where all pairs were visited."""
    pairs: np.ndarray
    """Ordered pairs (i, j), i an anchor."""
    anchors: int


def distance_by_jaccard(
    edge_index: Tensor, y: Tensor, coefficients: Tensor, anchors: int = 5000, seed: int = 0
) -> DistanceByJaccard:
    """Mean coefficient distance by Jaccard distance of the neighbourhoods, same label or not.

    Args:
        edge_index: links in both directions, ``[2, 2E]``.
        y: labels ``[n]``, -1 where there is none.
        coefficients: Ψ, ``[n, K + 1]``.
        anchors: most nodes whose pairs with all others are visited; at least that many nodes: exact.
        seed: decides the anchors.
    """
    n, labels, psi = len(y), y.cpu().numpy(), coefficients.detach().cpu().double().numpy()
    row, col = edge_index.cpu().numpy()
    matrix = sparse.csr_array((np.ones(len(row), dtype=np.int32), (row, col)), shape=(n, n))
    labelled = np.flatnonzero(labels >= 0)
    chosen = labelled
    if len(labelled) > anchors:
        chosen = np.sort(np.random.default_rng(seed).choice(labelled, anchors, replace=False))
    step = max(1, _CELLS // max(n, 1))
    parts = [
        _sums(chosen[i : i + step], matrix, labels, labelled, psi)
        for i in range(0, len(chosen), step)
    ]  # per anchor: number of pairs and sum of distances, [anchors, same or not, intervals]
    count, total = (np.concatenate([part[which] for part in parts]) for which in (0, 1))
    pairs = count.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total.sum(0) / pairs
        spread = np.square(total - mean * count).sum(0) * len(chosen) / max(1, len(chosen) - 1)
        error = np.sqrt((1 - len(chosen) / len(labelled)) * spread) / pairs
    return DistanceByJaccard(mean, error, pairs, len(chosen))


def _sums(
    rows: np.ndarray,
    matrix: sparse.csr_array,
    labels: np.ndarray,
    labelled: np.ndarray,
    psi: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    degree = np.diff(matrix.indptr)
    common = (matrix[rows] @ matrix).toarray()[:, labelled]
    union = degree[rows][:, None] + degree[labelled][None] - common
    with np.errstate(invalid="ignore"):
        jaccard = 1 - common / union
    interval = np.digitize(jaccard.round(9), LIMITS[1:])  # 1 - 0.8 is a little less than 0.2
    distance = cdist(psi[rows], psi[labelled])
    valid = (union > 0) & (rows[:, None] != labelled[None])
    differ = labels[rows][:, None] != labels[labelled][None]
    width = 2 * len(JACCARD_INTERVALS)
    cell = np.arange(len(rows))[:, None] * width + differ * len(JACCARD_INTERVALS) + interval
    size, shape = len(rows) * width, (len(rows), 2, len(JACCARD_INTERVALS))
    cells = cell[valid]
    count = np.bincount(cells, minlength=size).reshape(shape)
    return count, np.bincount(cells, weights=distance[valid], minlength=size).reshape(shape)
