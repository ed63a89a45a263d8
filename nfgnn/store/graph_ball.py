"""The nodes around new nodes, and those of their edges that were read."""

import threading

import numpy as np
from scipy import sparse

from nfgnn.store.extended_graph import ExtendedGraph

_PRIOR_CYCLES = 1000
"""Edges that close a cycle in the prior of their share: a small ball says little about it."""


class GraphBall:
    """The part of a graph that was read, with nodes numbered in the order of their discovery.

    The new nodes and the attached ones come first. The edges of new nodes are known from the start.
    Those of the existing graph are read row by row.

    Args:
        graph: the graph.

    Attributes:
        nodes: numbers of the nodes in the graph.
        scale: :math:`D^{-1/2}` of the nodes in the extended graph.
        rows: places of the nodes whose rows were read, in this order.
        weights: weights of the entries of these rows that lead to nodes of the ball.
        added: entries of Â in the rows and columns of new nodes.
        is_read: whether the row of a node was read.
        is_complete: whether all neighbours of a node are in the ball and its row was read.
    """

    def __init__(self, graph: ExtendedGraph) -> None:
        self.graph = graph
        starts = np.arange(graph.num_existing, graph.num_nodes)
        self.nodes = np.concatenate([starts, graph.attached])
        self._places = _place_table(graph.num_nodes)
        self._places[self.nodes] = np.arange(len(self.nodes), dtype=np.int32)
        self.scale = graph.scale(self.nodes)
        self.added = graph.added_entries()
        self.is_read = self.nodes >= graph.num_existing
        self.is_complete = self.is_read.copy()
        self._cycle_entries = 0
        self._grown_entries = 0
        self.rows = np.empty(0, dtype=np.int64)
        self.weights = np.empty(0)
        self._normalised = np.empty(0)
        self._starts = np.zeros(1, dtype=np.int64)
        self._targets = np.empty(0, dtype=np.int32)

    def __enter__(self) -> "GraphBall":
        return self

    def __exit__(self, *exception: object) -> None:
        self._places[self.nodes] = -1  # the table is used again

    @property
    def size(self) -> int:
        return len(self.nodes)

    def read(self, size: np.ndarray, tolerance: float, grow: bool) -> None:
        """Read the rows of nodes of the ball that matter.

        Args:
            size: squared entries of the nodes.
            tolerance: see :func:`~nfgnn.store.indicator_walks.indicator_walks`.
            grow: whether to add their neighbours to the ball, or to drop edges that leave it.
        """
        graph = self.graph.graph
        candidates = np.flatnonzero(~self.is_read & (size > tolerance))
        degree = graph.num_entries(self.nodes[candidates])
        rows = candidates[size[candidates] > tolerance * degree]
        counts, targets, weights = graph.rows(self.nodes[rows])
        place = self._places[targets]
        known = place >= 0
        if grow:
            size_before = self.size
            self._add(_distinct(targets[~known]))
            place = self._places[targets]
            # In a tree, one entry of a row leads back, and all others to new nodes.
            tree = self.size - size_before + len(rows) * (1 + graph.self_loops)
            self._grown_entries += len(targets)
            self._cycle_entries += max(len(targets) - tree, 0)
            self.is_complete[rows] = True
        else:
            row = np.repeat(np.arange(len(rows)), counts)
            counts = np.bincount(row[known], minlength=len(rows))
            place = place[known]
            weights = None if weights is None else weights[known]
        weights = np.ones(len(place)) if weights is None else weights
        normalised = weights * self.scale[place]
        normalised *= np.repeat(self.scale[rows], counts)
        self.is_read[rows] = True
        self.rows = np.append(self.rows, rows)
        self.weights = np.append(self.weights, weights)
        self._normalised = np.append(self._normalised, normalised)
        ends = self._starts[-1] + np.cumsum(counts)
        self._starts = np.append(self._starts, ends)
        self._targets = np.append(self._targets, place)

    @property
    def cycle_share(self) -> float:
        """Estimated share of the edges that close a cycle, which is large for a small ball."""
        return (self._cycle_entries + _PRIOR_CYCLES) / (self._grown_entries + _PRIOR_CYCLES)

    def stored_scale(self) -> np.ndarray:
        r"""Return :math:`D^{-1/2}` of the nodes in the existing graph, 0 for new nodes."""
        scale = self.scale.copy()
        m = self.graph.num_nodes - self.graph.num_existing
        attached = self.graph.attached
        scale[:m] = 0.0
        scale[m : m + len(attached)] = self.graph.graph.scale[attached]
        return scale

    def entries(self, values: np.ndarray) -> sparse.csr_array:
        """Return the rows that were read as a matrix with these values."""
        shape = (len(self.rows), self.size)
        return sparse.csr_array((values, self._targets, self._starts), shape)

    def normalised_entries(self) -> sparse.csr_array:
        """Return the entries of Â in the rows that were read."""
        return self.entries(self._normalised)

    def spread(self, vectors: np.ndarray) -> np.ndarray:
        r"""Apply Â with the columns of nodes whose rows were read; all others are zero."""
        found = product(self.normalised_entries().T, vectors[self.rows])
        first = self.added.shape[0]
        found[:first] += self.added @ vectors[:first]
        return found

    def _add(self, nodes: np.ndarray) -> None:
        """Add nodes of the existing graph to the ball."""
        self._places[nodes] = np.arange(self.size, self.size + len(nodes), dtype=np.int32)
        self.nodes = np.append(self.nodes, nodes)
        self.scale = np.append(self.scale, self.graph.graph.scale[nodes])
        unread = np.zeros(len(nodes), dtype=bool)
        self.is_read = np.append(self.is_read, unread)
        self.is_complete = np.append(self.is_complete, unread)


def product(matrix: sparse.sparray, vectors: np.ndarray) -> np.ndarray:
    """Multiply; the product with one vector is faster than that with a matrix of one column."""
    if vectors.shape[1] > 1:
        return np.asarray(matrix @ vectors)
    return np.asarray(matrix @ vectors[:, 0])[:, None]


def _distinct(nodes: np.ndarray) -> np.ndarray:
    """Return the distinct nodes in ascending order, in which the files are then read.

    Sorting is faster here than the hash table of ``np.unique``.
    """
    nodes = np.sort(nodes)
    is_first = np.ones(len(nodes), dtype=bool)
    is_first[1:] = nodes[1:] != nodes[:-1]
    return nodes[is_first]


_local = threading.local()


def _place_table(num_nodes: int) -> np.ndarray:
    """Return an array of -1 for all nodes, which this thread reuses."""
    tables: dict[str, np.ndarray] = vars(_local)
    found = tables.get("places")
    if found is None or len(found) < num_nodes:
        # Some reserve, because the number of new nodes varies.
        found = np.full(num_nodes + 1024, -1, dtype=np.int32)
        tables["places"] = found
    return found
