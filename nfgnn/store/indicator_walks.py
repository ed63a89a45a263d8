r"""Chebyshev polynomials of Â on the indicator of a node, near that node.

:math:`\ell_i = T_i(\hat A)\,\mathbb 1_v` sums over the walks of at most i edges that start at v. At
v and its neighbours, where it is needed here, only walks that return matter, and a walk of K
edges that returns reaches nodes at a distance of about K/2. The entries of :math:`\ell_i` become
small with the distance, fastest behind nodes of high degree. The edges of a node are read if its
squared entry exceeds the tolerance ε times their number. As :math:`\lVert \ell_i \rVert \le 1`,
this reads at most 1/ε edges in every step, whatever the size of the graph and of its hubs.

Walks along edges that are not read are not lost, but estimated (:mod:`nfgnn.store.ball_operator`).
"""

import numpy as np

from nfgnn.store.ball_operator import BallOperator
from nfgnn.store.extended_graph import ExtendedGraph
from nfgnn.store.graph_ball import GraphBall

MAX_FACTOR = 100.0
"""Largest factor by which the tolerance of the last steps exceeds that of the first ones."""
MAX_CYCLES = 0.3
"""The factor is one if at least this share of the edges closes a cycle."""


def indicator_walks(
    graph: ExtendedGraph, K: int, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return :math:`\ell_0, \dots, \ell_K` of the m new nodes v.

    Args:
        graph: the extended graph.
        K: number of steps.
        tolerance: the tolerance ε; 0 follows all walks.

    Returns:
        The values on the attached nodes ``[K + 1, attached, m]``, and those on the new nodes
        ``[K + 1, m, m]``.
    """
    m = graph.num_nodes - graph.num_existing
    with GraphBall(graph) as ball:
        _grow(ball, m, K, tolerance)
    operator = BallOperator(ball, estimate=tolerance > 0)
    values = _chebyshev(operator, m, K, m + len(graph.attached))
    return values[:, m:], values[:, :m]


def _grow(ball: GraphBall, m: int, K: int, tolerance: float) -> None:
    """Read the edges that walks of K edges from the first m nodes need."""
    previous = np.zeros((ball.size, m))
    current = np.eye(ball.size, m)
    largest = np.zeros(ball.size)
    steps = K // 2 + 1
    for r in range(steps):
        # A node that matters in a later step only is read, too.
        largest = np.maximum(largest, np.square(current).max(1))
        factor = _last_factor(ball) if 2 * r >= K - 2 else 1.0
        # Of the last step of an even K, only the edges inside of the ball matter.
        ball.read(largest, factor * tolerance, grow=2 * r < K)
        if r == steps - 1:
            break
        product = ball.spread(_with_rows(current, ball.size))
        if r > 0:
            product = 2 * product - _with_rows(previous, ball.size)
        previous = current
        current = product
        largest = _with_rows(largest[:, None], ball.size)[:, 0]


def _last_factor(ball: GraphBall) -> float:
    """Return the factor of the tolerance in the last steps.

    These steps read the most edges. The fewer cycles a ball has, the more accurate is the estimate
    that replaces the edges.
    """
    return min(max((MAX_CYCLES / ball.cycle_share) ** 2, 1.0), MAX_FACTOR)


def _chebyshev(operator: BallOperator, starts: int, K: int, kept: int) -> np.ndarray:
    """Return the first rows of the vectors of the first nodes, ``[K + 1, kept, starts]``."""
    current = np.eye(operator.size, starts)
    previous = np.zeros_like(current)
    found = [current[:kept]]
    for k in range(K):
        following = operator.apply(current)
        if k > 0:
            following *= 2
            following -= previous
        previous = current
        current = following
        found.append(current[:kept].copy())  # a view would keep the whole vector in memory
    return np.stack(found)


def _with_rows(vectors: np.ndarray, rows: int) -> np.ndarray:
    padded = np.zeros((rows, vectors.shape[1]))
    padded[: len(vectors)] = vectors
    return padded
