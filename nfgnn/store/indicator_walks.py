r"""Chebyshev polynomials of Â on the indicator of a node, near that node.

:math:`\ell_i = T_i(\hat A)\,\mathbb 1_v` sums over the walks of at most i edges that start at v. At
v and its neighbours, where it is needed here, only walks that return matter, and a walk of K
edges that returns reaches nodes at a distance of about K/2. The entries of :math:`\ell_i` become
small with the distance, fastest behind nodes of high degree. A node is followed if its squared
entry exceeds the tolerance ε times the number of its edges. As :math:`\lVert \ell_i \rVert \le 1`,
this reads at most 1/ε edges in every step, whatever the size of the graph and of its hubs.

What is lost are walks that pass two nodes in a row that are not followed, so the error is a product
of two small entries. It is largest for the highest orders of the Chebyshev basis. There the value
at v is :math:`2 \lVert \ell_{K/2} \rVert^2 - 1`, in which the squared entries of many nodes at a
distance of K/2 add up.
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
    m = graph.num_nodes - graph.num_existing
    steps = (K + 1) // 2 + (K + 1) % 2
    with _Ball(graph) as ball:
        previous = np.zeros((ball.size, m))
        current = np.eye(ball.size, m)
        largest = np.zeros(ball.size)
        for r in range(steps):
            size = np.square(current).max(1)
            # A node that matters in a later step only is followed, too.
            largest = np.maximum(largest, size)
            if 2 * r >= K:
                # Of the last step of an even K, only the edges inside of the ball matter.
                ball.expand(largest, tolerance, grow=False)
            elif 2 * r >= K - 2:
                ball.expand(largest, tolerance, grow=True, leaf_size=4 * size)
            else:
                ball.expand(largest, tolerance, grow=True)
            if r == steps - 1:
                break
            product = ball.spread(_with_rows(current, ball.size))
            if r > 0:
                product = 2 * product - _with_rows(previous, ball.size)
            previous = current
            current = product
            largest = _with_rows(largest[:, None], ball.size)[:, 0]
        values = _chebyshev(ball, m, K, m + len(graph.attached))
    return values[:, m:], values[:, :m]


def _chebyshev(ball: "_Ball", starts: int, K: int, kept: int) -> np.ndarray:
    """Return the first rows of the vectors of the first nodes, ``[K + 1, kept, starts]``."""
    current = np.eye(ball.size, starts)
    found = [current[:kept]]
    previous = current
    stems = np.flatnonzero(ball.leaves)
    weight = np.sqrt(ball.leaves[stems])[:, None]
    leaves = np.zeros((len(stems), starts))
    leaves_before = leaves
    for k in range(K):
        following = ball.apply(current)
        following[stems] += weight * leaves
        leaves_after = weight * current[stems]
        if k > 0:
            following *= 2
            following -= previous
            leaves_after = 2 * leaves_after - leaves_before
        previous = current
        current = following
        leaves_before = leaves
        leaves = leaves_after
        found.append(current[:kept])
    return np.stack(found)


def _with_rows(vectors: np.ndarray, rows: int) -> np.ndarray:
    padded = np.zeros((rows, vectors.shape[1]))
    padded[: len(vectors)] = vectors
    return padded


class _Ball:
    """The part of a graph that was read, with nodes numbered in the order of their discovery.

    The new nodes and the attached ones come first, and all edges of the new nodes are known.
    Those of an expanded node are one row of a sparse matrix, in the order of the expansion.

    Args:
        graph: the graph.

    Attributes:
        leaves: sums of the squared entries between a node and its leaves, which are nodes without
            another known edge. For walks, all leaves of a node are together like one with the root
            of this sum as its entry, so the ball does not contain them.
    """

    def __init__(self, graph: ExtendedGraph) -> None:
        self.graph = graph
        starts = np.arange(graph.num_existing, graph.num_nodes)
        self.nodes = np.concatenate([starts, graph.attached])
        self._places = _place_table(graph.num_nodes)
        self._places[self.nodes] = np.arange(len(self.nodes), dtype=np.int32)
        self._scale = graph.scale(self.nodes)
        self._added = graph.added_entries()
        self._is_expanded = self.nodes >= graph.num_existing
        self.leaves = np.zeros(len(self.nodes))
        self._expanded = np.empty(0, dtype=np.int64)
        self._counts = np.empty(0, dtype=np.int64)
        self._targets = np.empty(0, dtype=np.int32)
        self._weights = np.empty(0)

    def __enter__(self) -> "_Ball":
        return self

    def __exit__(self, *exception: object) -> None:
        self._places[self.nodes] = -1  # the table is used again

    @property
    def size(self) -> int:
        return len(self.nodes)

    def expand(
        self,
        size: np.ndarray,
        tolerance: float,
        grow: bool,
        leaf_size: np.ndarray | None = None,
    ) -> None:
        """Read the edges of nodes of the ball, as far as they are not known.

        Args:
            size: squared entries of the nodes.
            tolerance: see :func:`indicator_walks`.
            grow: whether to add their neighbours to the ball, or to drop edges that leave it.
            leaf_size: what to multiply with the squared entry of Â to find the squared entry of a
                new neighbour, in the last step that grows. Neighbours that are not followed and
                have one known edge become leaves.
        """
        graph = self.graph.graph
        candidates = np.flatnonzero(~self._is_expanded & (size > tolerance))
        degree = graph.num_entries(self.nodes[candidates])
        inner = candidates[size[candidates] > tolerance * degree]
        counts, targets, weights = graph.rows(self.nodes[inner])
        place = self._places[targets]
        kept = place >= 0
        if grow:
            unknown = np.flatnonzero(~kept)
            if leaf_size is not None:
                row = np.repeat(np.arange(len(inner)), counts)[unknown]
                weight = 1.0 if weights is None else weights[unknown]
                stems = inner[row]
                leaf = self._split_leaves(stems, targets[unknown], weight, leaf_size, tolerance)
                counts -= np.bincount(row[leaf], minlength=len(inner))
                unknown = unknown[~leaf]
            place[unknown] = self._add(targets[unknown])
            kept[unknown] = True
        else:
            row = np.repeat(np.arange(len(inner)), counts)
            counts -= np.bincount(row[~kept], minlength=len(inner))
        place = place[kept]
        weights = np.ones(len(place)) if weights is None else weights[kept]
        self._is_expanded[inner] = True
        self._expanded = np.append(self._expanded, inner)
        self._counts = np.append(self._counts, counts)
        self._targets = np.append(self._targets, place)
        self._weights = np.append(self._weights, weights)

    def _split_leaves(
        self,
        stems: np.ndarray,
        nodes: np.ndarray,
        weight: np.ndarray | float,
        leaf_size: np.ndarray,
        tolerance: float,
    ) -> np.ndarray:
        """Turn neighbours of nodes into leaves and return which of them are."""
        squares = np.square(self._scale[stems] * self.graph.graph.scale[nodes] * weight)
        size = leaf_size[stems] * squares
        followed = size > tolerance
        large = np.flatnonzero(followed)
        followed[large] = size[large] > tolerance * self.graph.graph.num_entries(nodes[large])
        leaf: np.ndarray = ~followed & self._occur_once(nodes)
        self.leaves += np.bincount(stems[leaf], squares[leaf], minlength=self.size)
        return leaf

    def _occur_once(self, nodes: np.ndarray) -> np.ndarray:
        """Return which of some nodes outside of the ball are listed once."""
        position = np.arange(len(nodes), dtype=np.int32)
        self._places[nodes] = position  # the last one of equal nodes remains
        last = self._places[nodes] == position
        self._places[nodes[::-1]] = position[::-1]
        once: np.ndarray = last & (self._places[nodes] == position)
        self._places[nodes] = -1
        return once

    def spread(self, vectors: np.ndarray) -> np.ndarray:
        r"""Apply Â with the columns of expanded nodes; all others are zero."""
        scaled = self._scale[:, None] * vectors
        found = _product(self._matrix().T, scaled[self._expanded])
        return self._with_added(found, vectors)

    def apply(self, vectors: np.ndarray) -> np.ndarray:
        r"""Apply Â with the rows and columns of expanded nodes."""
        scaled = self._scale[:, None] * vectors
        matrix = self._matrix()
        found = _product(matrix.T, scaled[self._expanded])
        found[self._expanded] = _product(matrix, scaled)
        return self._with_added(found, vectors)

    def _with_added(self, found: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        found *= self._scale[:, None]
        first = self._added.shape[0]
        found[:first] += self._added @ vectors[:first]
        return found

    def _matrix(self) -> sparse.csr_array:
        """Return the entries of the adjacency matrix in the rows of expanded nodes."""
        starts = np.append(0, np.cumsum(self._counts))
        shape = (len(self._expanded), self.size)
        return sparse.csr_array((self._weights, self._targets, starts), shape)

    def _add(self, nodes: np.ndarray) -> np.ndarray:
        """Add nodes of the existing graph to the ball, and return their places."""
        # Every node writes its position, and the last one of equal nodes remains.
        position = np.arange(len(nodes), dtype=np.int32)
        self._places[nodes] = position
        unique = nodes[self._places[nodes] == position]
        self._places[unique] = np.arange(self.size, self.size + len(unique), dtype=np.int32)
        self.nodes = np.append(self.nodes, unique)
        self._scale = np.append(self._scale, self.graph.graph.scale[unique])
        self._is_expanded = np.append(self._is_expanded, np.zeros(len(unique), dtype=bool))
        self.leaves = np.append(self.leaves, np.zeros(len(unique)))
        found: np.ndarray = self._places[nodes]
        return found


def _product(matrix: sparse.sparray, vectors: np.ndarray) -> np.ndarray:
    """Multiply; the product with one vector is faster than that with a matrix of one column."""
    if vectors.shape[1] > 1:
        return np.asarray(matrix @ vectors)
    return np.asarray(matrix @ vectors[:, 0])[:, None]


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
