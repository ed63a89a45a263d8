"""Sums over the rows of a stored graph."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.new_nodes import GraphWithNewNodes, graphs_with_new_nodes
from hypothesis import given, settings

from nfgnn.errors import UserError
from nfgnn.spectral import resolve_basis
from nfgnn.store import NewNodes, StoredGraph, stored_graph


def dense(graph: StoredGraph) -> np.ndarray:
    """Return the adjacency matrix."""
    found = np.zeros((graph.num_nodes, graph.num_nodes))
    entries = graph.neighbours(np.arange(graph.num_nodes))
    found[entries.row, entries.target] = entries.weight
    return found


@given(case=graphs_with_new_nodes(max_new=1, max_edges=0, max_K=1, min_lambda=2.0))
@settings(max_examples=30, deadline=None)
def test_sums_over_rows_equal_those_of_the_dense_matrix(case: GraphWithNewNodes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_graph, "_BLOCK", 7)  # several blocks
        graph = case.stored_graph()
        matrix = dense(graph)
        degree = matrix.sum(1)
        inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
        np.testing.assert_allclose(graph.neighbour_squares, matrix**2 @ inverse, rtol=1e-6)
        assert graph.total_degree == pytest.approx(degree.sum())


def test_damaged_files_are_reported() -> None:
    ends = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    new = NewNodes(torch.zeros(1, 1), torch.tensor([[0], [3]]))
    case = GraphWithNewNodes(torch.zeros(3, 1), ends, None, new, resolve_basis("chebyshev"), 1)
    graph = case.stored_graph()
    indices = graph.indices.copy()
    indices[-1] = 3
    with pytest.raises(UserError, match=r"indices\.npy is damaged"):
        _ = replace(graph, indices=indices).neighbour_squares
    indptr = graph.indptr.copy()
    indptr[-1] = 5
    with pytest.raises(UserError, match=r"indptr\.npy is damaged"):
        _ = replace(graph, indptr=indptr).neighbour_squares
