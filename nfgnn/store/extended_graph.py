"""A stored graph together with new nodes."""

import numpy as np
from scipy import sparse

from nfgnn.store.new_node_terms import NewNodes
from nfgnn.store.stored_graph import StoredGraph


class ExtendedGraph:
    """A stored graph together with new nodes, which have the numbers from ``num_existing`` on.

    Args:
        graph: the existing graph.
        new: the new nodes.

    Attributes:
        attached: existing nodes with an edge to a new one, ascending.
        factor: square roots of the ratio of their old and new degrees.
        edges: normalised entries between the attached and the new nodes, ``[attached, m]``.
    """

    def __init__(self, graph: StoredGraph, new: NewNodes) -> None:
        self.graph = graph
        self.num_existing = graph.num_nodes
        n = self.num_existing
        m = new.x.shape[0]
        source, target, weight = (part.numpy() for part in new.directed_edges(n))
        if graph.self_loops:
            loops = np.arange(n, n + m)
            order = np.argsort(np.concatenate([source, loops]), kind="stable")
            source = np.concatenate([source, loops])[order]
            target = np.concatenate([target, loops])[order]
            weight = np.concatenate([weight, np.ones(m)])[order]
        self._source = source
        self._target = target
        self._weight = weight
        inward = source < n
        self.attached, place = np.unique(source[inward], return_inverse=True)
        ends = (place, target[inward] - n)
        edges = sparse.csr_array((weight[inward], ends), (len(self.attached), m))
        before = graph.degree(self.attached)
        after = before + edges.sum(1)
        degree_of_new = np.bincount(source[~inward] - n, weight[~inward], minlength=m)
        self._attached_scale = _inverse_root(after)
        self._new_scale = _inverse_root(degree_of_new)
        # The factor of a node without other edges does not matter: its row of Â is zero.
        ratio = before / np.where(after > 0, after, 1.0)
        self.factor = np.where(before > 0, np.sqrt(ratio), 1.0)
        scaled = sparse.diags_array(self._attached_scale) @ edges
        self.edges = (scaled @ sparse.diags_array(self._new_scale)).tocsr()

    @property
    def num_nodes(self) -> int:
        return self.num_existing + len(self._new_scale)

    def scale(self, nodes: np.ndarray) -> np.ndarray:
        r"""Return :math:`D^{-1/2}` of some nodes in the extended graph."""
        existing = nodes < self.num_existing
        scale = np.empty(len(nodes))
        scale[~existing] = self._new_scale[nodes[~existing] - self.num_existing]
        scale[existing] = self.graph.scale[nodes[existing]]
        if len(self.attached):
            place = np.searchsorted(self.attached, nodes)
            place = np.minimum(place, len(self.attached) - 1)
            changed = self.attached[place] == nodes
            scale[changed] = self._attached_scale[place[changed]]
        return scale

    def added_entries(self) -> sparse.csr_array:
        r"""Return the entries of Â in the rows and columns of new nodes.

        The matrix has a row for every new node, and then one for every attached node.
        """
        n = self.num_existing
        m = len(self._new_scale)
        inner = (self._source >= n) & (self._target >= n)
        ends = (self._source[inner] - n, self._target[inner] - n)
        values = self._weight[inner] * self._new_scale[ends[0]] * self._new_scale[ends[1]]
        between = sparse.csr_array((values, ends), (m, m))
        return sparse.block_array([[between, self.edges.T], [self.edges, None]]).tocsr()


def _inverse_root(degree: np.ndarray) -> np.ndarray:
    positive = degree > 0
    return np.where(positive, np.where(positive, degree, 1.0) ** -0.5, 0.0)
