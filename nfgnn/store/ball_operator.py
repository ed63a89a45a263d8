r"""The operator Â on a ball, with an estimate of the edges that were not read.

A node u of the ball may have edges that are unknown, because its row was not read. Walks that use
them come back to the ball in two ways:

- They return to u at once. The weight of these walks is the sum of the squared entries of the
  unknown edges, which follows from that of all edges
  (:attr:`~nfgnn.store.StoredGraph.neighbour_squares`). One additional node per node, its *leaf*,
  has this effect.
- They return to another node. Here every unknown edge is replaced by its expectation in a random
  graph with the same degrees. All nodes outside of the ball together are one more node. With
  :math:`ρ_u = \sum w_{uw} (1 - w_{uw} / d_w)` over the unknown edges of u, which leaves out
  what returns at once, the entries are :math:`b_u b_w` with
  :math:`b_u = ρ_u d_u^{-1/2} / \sqrt{\sum_w ρ_w}`.

The norm of the operator remains one: if the leaf of u with the entry :math:`c_u` counts as a node
of degree :math:`c_u^2 d_u`, the square roots of the degrees are a positive eigenvector of it with
the eigenvalue one.

With a tolerance of 0, no walk of K edges that returns to an attached node uses an unknown edge, so
nothing needs to be estimated.
"""

import numpy as np

from nfgnn.store.graph_ball import GraphBall, product


class BallOperator:
    """Apply Â to vectors on a ball, on the leaves of its nodes, and on all other nodes as one.

    Args:
        ball: the ball.
        estimate: whether to estimate unknown edges; otherwise they are left out.
    """

    def __init__(self, ball: GraphBall, estimate: bool) -> None:
        self._nodes = ball.size
        self._rows = ball.rows
        self._matrix = ball.normalised_entries()
        self._transposed = self._matrix.T
        self._added = ball.added
        self._leaf = np.zeros((ball.size, 1))
        self._expected = np.zeros((ball.size, 1))
        self._outside = 0.0
        if estimate:
            unknown = _UnknownEdges(ball)
            self._leaf = unknown.leaf[:, None]
            self._expected = unknown.expected[:, None]
            self._outside = unknown.outside

    @property
    def size(self) -> int:
        return 2 * self._nodes + 1

    def apply(self, vectors: np.ndarray) -> np.ndarray:
        """Apply Â; the rows are the nodes of the ball, their leaves, and the node outside."""
        n = self._nodes
        inside = vectors[:n]
        found = np.empty_like(vectors)
        found[:n] = product(self._transposed, inside[self._rows])
        found[self._rows] = product(self._matrix, inside)
        first = self._added.shape[0]
        found[:first] += self._added @ inside[:first]
        found[:n] += self._leaf * vectors[n:-1]
        unknown = self._expected.T @ inside + self._outside * vectors[-1:]
        found[:n] += self._expected * unknown
        np.multiply(self._leaf, inside, out=found[n:-1])
        found[-1:] = self._outside * unknown
        return found


class _UnknownEdges:
    """What is known about the edges that were not read.

    Args:
        ball: the ball.

    Attributes:
        leaf: entries between the nodes of the ball and their leaves.
        expected: the values b of the nodes of the ball.
        outside: the value b of all other nodes as one.
    """

    def __init__(self, ball: GraphBall) -> None:
        graph = ball.graph.graph
        stored_scale = ball.stored_scale()
        inverse_degree = np.square(stored_scale)
        connected = inverse_degree > 0
        degree = np.divide(1.0, inverse_degree, out=np.zeros(ball.size), where=connected)
        weight = _known_sums(ball, ball.weights, np.ones(ball.size))
        squares = _known_sums(ball, np.square(ball.weights), inverse_degree)
        if graph.self_loops:
            # The loop of a node is not an edge that walks can leave it by.
            weight += ~ball.is_read
            squares += ~ball.is_read * inverse_degree

        places = np.flatnonzero(~ball.is_complete & connected)
        leaf = np.zeros(ball.size)
        leaf[places] = graph.neighbour_squares[ball.nodes[places]] - squares[places]
        leaf = np.maximum(leaf, 0.0)
        self.leaf = ball.scale * np.sqrt(leaf)

        # Of a row that was read, all edges to other nodes of the ball are known.
        leading_on = np.where(ball.is_read, 0.0, np.maximum(degree - weight - leaf, 0.0))
        outside = max(graph.total_degree - degree.sum(), 0.0)
        total = max(outside + leading_on.sum(), np.finfo(float).tiny)
        self.expected = ball.scale * leading_on / np.sqrt(total)
        self.outside = float(np.sqrt(outside / total))


def _known_sums(ball: GraphBall, entries: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the sums of entries times values of neighbours over the known edges of the nodes."""
    matrix = ball.entries(entries)
    found: np.ndarray = matrix.T @ values[ball.rows]
    found[ball.rows] = matrix @ values
    return found
