"""The sketch of the adjacency matrix against a dense product with the matrix of the hashes."""

import numpy as np
import pytest
import torch
from conftest import random_graph
from torch import Tensor

import nfgnn.spectral.neighbour_hashing as module
from nfgnn.spectral import CSR, adjacency_sketch, scaled_laplacian
from nfgnn.spectral.neighbour_hashing import hash_nodes

N = 40


def hash_matrix(n: int, columns: int) -> Tensor:
    """The matrix with the sign of every node in its column."""
    column, sign = hash_nodes(torch.arange(n), columns)
    matrix = torch.zeros(n, columns, dtype=torch.float64)
    matrix[torch.arange(n), column] = sign
    return matrix


@pytest.mark.parametrize("columns", [1, 6, 200])
@pytest.mark.parametrize("self_loops", [False, True])
def test_equals_a_dense_product(
    columns: int, self_loops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PIECE_VALUES", 7 * columns)
    edge_index = random_graph(N, 0.2, 0)
    edge_index = edge_index[:, (edge_index != 3).all(0)]  # node 3 has no neighbours
    adjacency = torch.zeros(N, N, dtype=torch.float64)
    adjacency[edge_index[0], edge_index[1]] = 1.0
    expected = torch.nn.functional.normalize(adjacency @ hash_matrix(N, columns))
    graph = scaled_laplacian(edge_index, None, N, self_loops)
    found = adjacency_sketch(graph.indptr, graph.indices, columns, torch.arange(N))
    torch.testing.assert_close(found, expected.float())
    assert not found[3].any()


def test_a_part_of_the_rows() -> None:
    graph = scaled_laplacian(random_graph(N, 0.2, 1), None, N)
    whole = adjacency_sketch(graph.indptr, graph.indices, 16, torch.arange(N))
    nodes = torch.tensor([4, 17, 18])
    entries = [graph.indices[graph.indptr[i] : graph.indptr[i + 1]] for i in nodes]
    bounds = torch.tensor([0, *np.cumsum([len(part) for part in entries])])
    assert torch.equal(adjacency_sketch(bounds, torch.cat(entries), 16, nodes), whole[nodes])


def test_scalar_products_estimate_common_neighbours() -> None:
    neighbours = [range(300), range(100, 400), range(1000, 1300)]
    row = torch.repeat_interleave(torch.arange(3), 300)
    column = torch.tensor([j for group in neighbours for j in group])
    matrix = CSR.from_sorted(row, column, torch.ones(900), (3, 2000))
    nodes = torch.arange(1997, 2000)
    sketch = adjacency_sketch(matrix.indptr, matrix.indices, 4096, nodes)
    similarity = sketch @ sketch.T
    # The standard deviation of the estimate is about 1 / sqrt(columns) = 0.016.
    expected = torch.tensor([[1, 2 / 3, 0], [2 / 3, 1, 0], [0, 0, 1]])
    torch.testing.assert_close(similarity, expected, atol=0.08, rtol=0)


def test_hashes_are_uniform_and_stay_the_same() -> None:
    column, sign = hash_nodes(torch.arange(100_000), 10)
    # Stores depend on these values.
    assert column[:5].tolist() == [7, 0, 9, 2, 3]
    assert sign[:5].tolist() == [-1, 1, -1, 1, -1]
    # Both counts are binomial, with standard deviations of 95 and 158.
    assert (column.bincount() - 10_000).abs().max() < 500
    assert abs((sign > 0).sum() - 50_000) < 800
