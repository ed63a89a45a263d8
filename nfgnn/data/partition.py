"""Cut a graph into parts of similar size with few edges between them.

The method is that of `Meyerhenke, Sanders and Schulz <https://arxiv.org/abs/1402.3281>`_ in a
simple form:

1. Label propagation with bounded clusters merges nodes that many edges join. The clusters are the
   nodes of a smaller graph, which is clustered in turn, until there are as few as parts.
2. The last clusters are ordered by reverse Cuthill-McKee and expanded, so that the nodes of a
   cluster follow each other. The parts are equal pieces of this order.
3. Label propagation moves nodes to the part that most of their neighbours are in, as long as the
   sizes of the parts stay within 10 % of their mean.

A pass is linear in the number of edges. METIS is faster, but not among the dependencies.
"""

import math
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from nfgnn.errors import UserError

_IMBALANCE = 0.1
_CLUSTER_PASSES = 6
_REFINEMENT_PASSES = 10
_LEAST_DECREASE = 0.05
"""Clustering ends when it merges fewer than this share of the nodes."""


def partition_graph(edge_index: Tensor, num_nodes: int, num_parts: int, seed: int = 0) -> Tensor:
    """Return the part of every node, ``[num_nodes]``, numbered from 0.

    The parts have between 0.9 and 1.1 times their mean size, rounded outwards, and at least one
    node. The same arguments give the same parts.

    Args:
        edge_index: the edges ``[2, edges]``. Directions, duplicates and self-loops do not matter.
        num_nodes: number of nodes.
        num_parts: number of parts, at most ``num_nodes``.
        seed: seed of the random numbers that break ties.
    """
    if not 1 <= num_parts <= num_nodes:
        raise UserError(
            f"a graph of {num_nodes:,} nodes cannot be cut into {num_parts:,} parts: use 1 to "
            f"{num_nodes:,} parts"
        )
    if num_parts == 1:
        return torch.zeros(num_nodes, dtype=torch.long)
    generator = np.random.default_rng(seed)
    graph = _adjacency(edge_index.cpu().numpy(), num_nodes)
    mean = num_nodes / num_parts
    position = _cluster_order(graph, num_parts, math.ceil(mean), generator)
    labels = _propagate(
        graph,
        np.ones(num_nodes),
        position * num_parts // num_nodes,
        max(1, math.floor((1 - _IMBALANCE) * mean)),
        math.ceil((1 + _IMBALANCE) * mean),
        _REFINEMENT_PASSES,
        generator,
    )
    return torch.from_numpy(labels)


def kept_edges(edge_index: Tensor, part: Tensor) -> float:
    """Return the share of the edges that join nodes of one part; 1 for a graph without edges."""
    source, target = edge_index
    if source.numel() == 0:
        return 1.0
    return float((part[source] == part[target]).double().mean())


def _adjacency(edge_index: np.ndarray, num_nodes: int) -> Any:
    """Return the symmetric adjacency matrix without its diagonal."""
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    ones = np.ones(len(source), dtype=np.float32)
    directed = sparse.csr_array((ones, (source, target)), shape=(num_nodes, num_nodes))
    return (directed + directed.T).tocsr()


def _cluster_order(
    graph: Any, num_parts: int, largest: int, generator: np.random.Generator
) -> np.ndarray:
    """Return a position for every node, so that nodes of a cluster follow each other."""
    weight = np.ones(graph.shape[0])
    levels = []
    while graph.shape[0] > num_parts:
        size = graph.shape[0]
        labels = np.arange(size)
        labels = _propagate(graph, weight, labels, 0, largest, _CLUSTER_PASSES, generator)
        found, clusters = np.unique(labels, return_inverse=True)
        if len(found) > (1 - _LEAST_DECREASE) * size:
            break
        levels.append(clusters)
        members = _members(clusters, len(found))
        graph = (members.T @ graph @ members).tocsr()
        graph.setdiag(0)
        graph.eliminate_zeros()
        weight = np.bincount(clusters, weight)
    order = reverse_cuthill_mckee(sparse.csr_matrix(graph), symmetric_mode=True)
    position = _inverse(order)
    for clusters in reversed(levels):
        position = _inverse(np.argsort(position[clusters], kind="stable"))
    return position


def _members(labels: np.ndarray, num_labels: int) -> Any:
    """Return the matrix with a 1 in the column of the label of every row."""
    ones = np.ones(len(labels), dtype=np.float32)
    row_starts = np.arange(len(labels) + 1)
    return sparse.csr_array((ones, labels, row_starts), shape=(len(labels), num_labels))


def _inverse(order: np.ndarray) -> np.ndarray:
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    return position


def _propagate(
    graph: Any,
    weight: np.ndarray,
    labels: np.ndarray,
    least: float,
    most: float,
    passes: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Move nodes to the label that most of their edges lead to.

    Args:
        graph: symmetric adjacency matrix.
        weight: weights of the nodes.
        labels: the labels to start from, ``0, …, labels.max()``.
        least, most: bounds of the total weight of a label.
        passes: largest number of passes over all nodes.
        generator: source of random numbers.
    """
    labels = labels.copy()
    num_labels = int(labels.max()) + 1
    for _ in range(passes):
        load = np.bincount(labels, weight, num_labels)
        node, target, gain = _best_moves(graph, weight, labels, load, most, generator)
        if len(node) == 0:
            break
        # Neighbours that move at the same time could swap labels for ever. Half of the nodes rest.
        awake = np.flatnonzero(generator.random(len(node)) < 0.5)
        moves = awake[np.argsort(-gain[awake], kind="stable")]
        moves = moves[_fits(target[moves], weight[node[moves]], most - load)]
        moves = moves[_fits(labels[node[moves]], weight[node[moves]], load - least)]
        labels[node[moves]] = target[moves]
    return labels


def _best_moves(
    graph: Any,
    weight: np.ndarray,
    labels: np.ndarray,
    load: np.ndarray,
    most: float,
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return nodes that have more edges to another label than to their own.

    Returns:
        The nodes, the label with room for the node that most edges lead to, and the number of edges
        that this label has more than the present one.
    """
    strength = graph @ _members(labels, len(load))
    node = np.repeat(np.arange(len(labels)), np.diff(strength.indptr))
    label = strength.indices
    is_own = label == labels[node]
    own = np.zeros(len(labels), dtype=strength.dtype)
    own[node[is_own]] = strength.data[is_own]
    gain = strength.data - own[node]
    possible = (gain > 0) & ~is_own & (load[label] + weight[node] <= most)
    node = node[possible]
    label = label[possible]
    gain = gain[possible]
    if len(node) == 0:
        return node, label, gain
    # Gains are whole numbers, so these random numbers only break ties.
    score = gain + generator.random(len(gain))
    starts = np.flatnonzero(np.diff(node, prepend=-1))
    highest = np.maximum.reduceat(score, starts)
    best = score == np.repeat(highest, np.diff(starts, append=len(node)))
    return node[best], label[best], gain[best]


def _fits(group: np.ndarray, weight: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return which weights fit into the room of their group, if they are added in this order."""
    order = np.argsort(group, kind="stable")
    group = group[order]
    sums = np.concatenate([[0.0], np.cumsum(weight[order])])
    first = np.searchsorted(group, group)
    fits = np.empty(len(group), dtype=bool)
    fits[order] = sums[1:] - sums[first] <= room[group]
    return fits
