"""The parts of the rows of new nodes besides the terms, from their neighbourhood only.

A part of a new node depends on its neighbours in the extended graph, and the two-hop sketch on
the neighbours of these. The result equals that of recomputing the whole extended graph.
"""

import torch
from torch import Tensor

from nfgnn.spectral import (
    NeighbourLists,
    RowParts,
    ScaledLaplacian,
    adjacency_sketch,
    log_degree,
    neighbour_cosine,
)
from nfgnn.spectral.two_hop_hashing import (
    inverse_norms,
    scaled_to_length_one,
    sketch_columns,
    two_hop_columns,
)
from nfgnn.store.new_node_terms import (
    ExistingGraph,
    ExtendedEdges,
    Features,
    MemoryGraph,
    NewNodes,
)


def parts_of_new_nodes(
    graph: ScaledLaplacian | ExistingGraph, features: Features, new: NewNodes, parts: RowParts
) -> Tensor:
    """Return the parts of the rows of new nodes in the extended graph, ``[m, parts.width]``.

    Args:
        graph: the existing graph without self-loops; of an operator, only the edges are used.
        features: returns features of nodes of the existing graph.
        new: the new nodes; ``new.x`` is scaled like ``features``.
        parts: what the rows of the model hold.
    """
    if isinstance(graph, ScaledLaplacian):
        graph = MemoryGraph(graph)
    extended = ExtendedEdges(graph, new)
    num_existing = graph.num_nodes
    lists = _lists(extended, torch.arange(num_existing, num_existing + new.x.shape[0]))
    found = [torch.empty(len(lists.nodes), 0)]
    if parts.sketch:
        found.append(adjacency_sketch(lists.indptr, lists.indices, parts.sketch, lists.nodes))
    if parts.two_hop:
        found.append(_two_hop(extended, lists, parts.two_hop))
    if parts.degree:
        found.append(log_degree(lists)[:, None])
    if parts.agreement:
        found.append(_cosines(lists, features, new, num_existing)[:, None].float())
    return torch.cat(found, 1)


def _lists(extended: ExtendedEdges, nodes: Tensor) -> NeighbourLists:
    """Return the neighbours of some nodes in the extended graph."""
    edges = extended.edges(nodes)
    counts = torch.bincount(edges.row, minlength=len(nodes))
    bounds = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return NeighbourLists.of(nodes, bounds, edges.target)


def _two_hop(extended: ExtendedEdges, lists: NeighbourLists, columns: int) -> Tensor:
    """Return the two-hop sketches of the new nodes."""
    neighbours = lists.indices.unique()
    if len(neighbours) == 0:
        return torch.zeros(len(lists.nodes), columns)
    around = _lists(extended, neighbours)
    scale = inverse_norms(around, columns)
    one_hop = sketch_columns(around, scale, columns, 0, columns)
    local = NeighbourLists(lists.nodes, lists.indptr, torch.searchsorted(neighbours, lists.indices))
    return scaled_to_length_one(two_hop_columns(local, one_hop, scale, columns, 0).float())


def _cosines(lists: NeighbourLists, features: Features, new: NewNodes, num_existing: int) -> Tensor:
    """Return the mean cosines between the features of the new nodes and their neighbours."""
    neighbours = lists.indices.unique()
    existing = neighbours[neighbours < num_existing]
    x = new.x
    if len(existing):
        x = torch.cat([features(existing), new.x])
    # The new nodes have the largest numbers, so this order is ascending.
    known = torch.cat([existing, lists.nodes])
    local = NeighbourLists(
        torch.searchsorted(known, lists.nodes),
        lists.indptr,
        torch.searchsorted(known, lists.indices),
    )
    return neighbour_cosine(local, x)
