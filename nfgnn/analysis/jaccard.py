r"""Do nodes with similar neighbourhoods learn similar filters? Coefficient by Jaccard distance.

For pairs of nodes, :math:`J(i, j) = 1 - |N_1(i) ∩ N_1(j)| / |N_1(i) ∪ N_1(j)|` and
:math:`d(Ψ_i, Ψ_j) = \lVert Ψ_i - Ψ_j \rVert_2`. The mean of d is taken per interval of J, for pairs
with the same label and with different labels. J = 1 (no common neighbour), the value of nearly all
pairs, is an interval of its own. Pairs of nodes without any neighbours have no J and are left out,
as are unlabelled nodes.

All pairs of a node are visited at once, in blocks of rows. If there are more nodes than
``anchors``, only the pairs of randomly chosen anchor nodes are visited. Means per interval are then
ratios of two sums over anchors, whose standard error is given (linearised ratio estimator with the
correction for sampling without replacement).
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from torch import Tensor

from nfgnn.analysis.neighbourhood import adjacency_matrix, edge_array

JACCARD_INTERVALS = ("[0, 0.2)", "[0.2, 0.4)", "[0.4, 0.6)", "[0.6, 0.8)", "[0.8, 1)", "1")
_UPPER_LIMITS = (0.2, 0.4, 0.6, 0.8, 1.0)
_MAX_CELLS = 4_000_000


@dataclass(frozen=True)
class DistanceByJaccard:
    """Rows: same label, different labels; columns: :data:`JACCARD_INTERVALS`."""

    mean: np.ndarray
    """Mean of d, NaN where there is no pair."""
    error: np.ndarray
    """Standard error due to the choice of anchors; 0 if all pairs were visited."""
    pairs: np.ndarray
    """Number of ordered pairs (i, j) with an anchor i."""
    anchors: int


@dataclass(frozen=True)
class _Graph:
    adjacency: sparse.csr_array
    labels: np.ndarray
    labelled: np.ndarray
    """Indices of the labelled nodes."""
    psi: np.ndarray


def distance_by_jaccard(
    edge_index: Tensor, y: Tensor, coefficients: Tensor, anchors: int = 5000, seed: int = 0
) -> DistanceByJaccard:
    """Return mean coefficient distances by Jaccard distance of the neighbourhoods.

    Args:
        edge_index: edges in both directions, ``[2, 2E]``.
        y: labels ``[n]``, -1 where unlabelled.
        coefficients: Ψ, ``[n, K + 1]``.
        anchors: largest number of nodes whose pairs with all others are visited. The result is
            exact if the graph has no more nodes than that.
        seed: seed of the choice of anchors.
    """
    n = len(y)
    labels = y.cpu().numpy()
    graph = _Graph(
        adjacency=adjacency_matrix(edge_array(edge_index, n), n, np.int32),
        labels=labels,
        labelled=np.flatnonzero(labels >= 0),
        psi=coefficients.detach().cpu().double().numpy(),
    )
    chosen = graph.labelled
    if len(chosen) > anchors:
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(chosen, anchors, replace=False))
    step = max(1, _MAX_CELLS // max(n, 1))
    counts = []
    totals = []
    for start in range(0, len(chosen), step):
        block_count, block_total = _sums(chosen[start : start + step], graph)
        counts.append(block_count)
        totals.append(block_total)
    # Per anchor: number of pairs and sum of distances, [anchors, 2, intervals].
    count = np.concatenate(counts)
    total = np.concatenate(totals)
    pairs = count.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total.sum(0) / pairs
        residual = np.square(total - mean * count).sum(0)
        spread = residual * len(chosen) / max(1, len(chosen) - 1)
        unvisited = 1 - len(chosen) / len(graph.labelled)
        error = np.sqrt(unvisited * spread) / pairs
    return DistanceByJaccard(mean, error, pairs, len(chosen))


def _sums(rows: np.ndarray, graph: _Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return number of pairs and sum of distances of every anchor in ``rows``."""
    # Imported here because only this function needs it, and it takes half a second.
    from scipy.spatial.distance import cdist

    others = graph.labelled
    degree = np.diff(graph.adjacency.indptr)
    common = (graph.adjacency[rows] @ graph.adjacency).toarray()
    common = common[:, others]
    union = degree[rows, None] + degree[others] - common
    with np.errstate(invalid="ignore"):
        jaccard = 1 - common / union
    # Rounding, because 1 - 0.8 is a little less than 0.2.
    interval = np.digitize(jaccard.round(9), _UPPER_LIMITS)
    distance = cdist(graph.psi[rows], graph.psi[others])
    valid = (union > 0) & (rows[:, None] != others)
    differ = graph.labels[rows, None] != graph.labels[others]
    # One histogram over anchors, equality of labels and intervals.
    shape = (len(rows), 2, len(JACCARD_INTERVALS))
    anchor = np.arange(len(rows))[:, None]
    group = anchor * shape[1] + differ
    cell = group * shape[2] + interval
    size = int(np.prod(shape))
    count = np.bincount(cell[valid], minlength=size)
    total = np.bincount(cell[valid], weights=distance[valid], minlength=size)
    return count.reshape(shape), total.reshape(shape)
