r"""Chebyshev polynomials of Â on the indicator of a node, near that node.

:math:`\ell_i = T_i(\hat A)\,\mathbb 1_v` sums over the walks of at most i edges that start at v. At
v and its neighbours, where it is needed here, only walks that return matter, and a walk of K
edges that returns reaches nodes at a distance of about K/2. The entries of :math:`\ell_i` become
small with the distance, fastest behind nodes of high degree. A node is followed if its squared
entry exceeds the tolerance ε times the number of its edges. As :math:`\lVert \ell_i \rVert \le 1`,
this reads at most 1/ε edges in every step, whatever the size of the graph and of its hubs.
"""

import threading

import numpy as np
from scipy import sparse

from nfgnn.store.extended_graph import ExtendedGraph


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
    starts = np.arange(graph.num_existing, graph.num_nodes)
    m = len(starts)
    with _Ball(graph, np.concatenate([starts, graph.attached])) as ball:
        previous = np.zeros((ball.size, m))
        current = np.eye(ball.size, m)
        for r in range((K + 1) // 2 + (K + 1) % 2):
            # Of the last step of an even K, only the edges inside of the ball matter.
            ball.expand(np.square(current).max(1), tolerance, grow=2 * r < K)
            product = ball.operator() @ _with_rows(current, ball.size)
            if r > 0:
                product = 2 * product - _with_rows(previous, ball.size)
            previous = current
            current = product
    values = _chebyshev(ball.symmetric_operator(), m, K, m + len(graph.attached))
    return values[:, m:], values[:, :m]


def _chebyshev(matrix: sparse.csr_array, starts: int, K: int, kept: int) -> np.ndarray:
    """Return the first rows of the vectors of the first nodes, ``[K + 1, kept, starts]``."""
    current = np.eye(matrix.shape[0], starts)
    found = [current[:kept]]
    previous = current
    for k in range(K):
        following = matrix @ current
        if k > 0:
            following *= 2
            following -= previous
        previous = current
        current = following
        found.append(current[:kept])
    return np.stack(found)


def _with_rows(vectors: np.ndarray, rows: int) -> np.ndarray:
    padded = np.zeros((rows, vectors.shape[1]))
    padded[: len(vectors)] = vectors
    return padded


class _Ball:
    """The part of a graph that was read, with nodes numbered in the order of their discovery.

    Args:
        graph: the graph.
        nodes: the first nodes.
    """

    def __init__(self, graph: ExtendedGraph, nodes: np.ndarray) -> None:
        self.graph = graph
        self.nodes = nodes
        self._places = _place_table(graph.num_nodes)
        self._places[nodes] = np.arange(len(nodes))
        self._scale = graph.scale(nodes)
        self._expanded = np.zeros(len(nodes), dtype=bool)
        empty = np.empty(0, dtype=np.int64)
        self._outer = [empty]
        self._inner = [empty]
        self._values = [np.empty(0)]

    def __enter__(self) -> "_Ball":
        return self

    def __exit__(self, *exception: object) -> None:
        self._places[self.nodes] = -1  # the table is used again

    @property
    def size(self) -> int:
        return len(self.nodes)

    def expand(self, size: np.ndarray, tolerance: float, grow: bool) -> None:
        """Read the edges of nodes of the ball, as far as they are not known.

        Args:
            size: squared entries of the nodes.
            tolerance: see :func:`indicator_walks`.
            grow: whether to add their neighbours to the ball, or to drop edges that leave it.
        """
        candidates = np.flatnonzero(~self._expanded[: len(size)] & (size > tolerance))
        degree = self.graph.num_edges(self.nodes[candidates])
        inner = candidates[size[candidates] > tolerance * degree]
        self._expanded[inner] = True
        edges = self.graph.neighbours(self.nodes[inner])
        if grow:
            self._add(edges.target)
        place = self._places[edges.target]
        known = place >= 0
        outer = place[known]
        inner = inner[edges.row[known]]
        self._outer.append(outer)
        self._inner.append(inner)
        self._values.append(self._scale[outer] * self._scale[inner] * edges.weight[known])

    def operator(self) -> sparse.csr_array:
        r"""Return Â with the columns of expanded nodes; all others are zero."""
        ends = (np.concatenate(self._outer), np.concatenate(self._inner))
        return sparse.csr_array((np.concatenate(self._values), ends), (self.size, self.size))

    def symmetric_operator(self) -> sparse.csr_array:
        r"""Return Â with the rows and columns of expanded nodes."""
        outer = np.concatenate(self._outer)
        inner = np.concatenate(self._inner)
        values = np.concatenate(self._values)
        # An edge between two expanded nodes was read twice.
        once = ~self._expanded[outer]
        ends = (np.append(outer, inner[once]), np.append(inner, outer[once]))
        return sparse.csr_array((np.append(values, values[once]), ends), (self.size, self.size))

    def _add(self, nodes: np.ndarray) -> None:
        unknown = nodes[self._places[nodes] < 0]
        # Every node writes its position, and the last one of equal nodes remains.
        self._places[unknown] = np.arange(len(unknown))
        unknown = unknown[self._places[unknown] == np.arange(len(unknown))]
        self._places[unknown] = np.arange(self.size, self.size + len(unknown))
        self.nodes = np.concatenate([self.nodes, unknown])
        self._scale = np.append(self._scale, self.graph.scale(unknown))
        self._expanded = np.append(self._expanded, np.zeros(len(unknown), dtype=bool))


_local = threading.local()


def _place_table(num_nodes: int) -> np.ndarray:
    """Return an array of -1 for all nodes, which this thread uses again and again."""
    tables: dict[str, np.ndarray] = vars(_local)
    found = tables.get("places")
    if found is None or len(found) < num_nodes:
        # Some reserve, because the number of new nodes varies.
        found = np.full(num_nodes + 1024, -1, dtype=np.int32)
        tables["places"] = found
    return found
