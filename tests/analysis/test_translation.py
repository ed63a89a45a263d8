"""Translated kernels against the dense eigenbasis, hop distances against NetworkX."""

import math

import networkx as nx
import pytest
import torch
from conftest import random_graph
from helpers import dense

from nfgnn.analysis import energy_by_hop, hop_distance, translate
from nfgnn.spectral import Bernstein, Chebyshev, Monomial


@pytest.mark.parametrize("basis", [Chebyshev(), Monomial(), Bernstein()])
def test_equals_the_eigenbasis(basis: Chebyshev | Monomial | Bernstein) -> None:
    n, K = 25, 4
    edge_index = random_graph(n, 0.2, 3)
    values, U = torch.linalg.eigh(dense.laplacian(edge_index, n))
    coefficients = torch.randn(
        K + 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    response = basis.evaluate(values - 1, K) @ coefficients
    nodes = torch.tensor([0, 3, 20])
    expected = math.sqrt(n) * (U * response) @ U[nodes].T
    assert torch.allclose(
        translate(edge_index, nodes, coefficients, num_nodes=n, basis=basis), expected, atol=1e-10
    )


@pytest.mark.parametrize("K", [0, 1, 3])
def test_values_beyond_k_hops_are_exactly_zero(K: int) -> None:
    n = 60
    edge_index = random_graph(n, 0.06, 4)
    graph = nx.Graph(edge_index.T.tolist())
    graph.add_nodes_from(range(n))
    for node in (0, 7, 45):
        kernel = translate(
            edge_index, torch.tensor([node]), lambda t: torch.exp(-2 * (t + 1)), K, n
        )[:, 0]
        path = nx.single_source_shortest_path_length(graph, node)
        distance = hop_distance(edge_index, node, n)
        assert distance.tolist() == [path.get(v, -1) for v in range(n)]
        far = (distance > K) | (distance < 0)
        assert bool((kernel[far] == 0).all())  # exactly, not nearly
        assert float(energy_by_hop(kernel, distance, K).sum()) == pytest.approx(1)


def test_function_without_degree_is_an_error() -> None:
    with pytest.raises(ValueError, match="degree K"):
        translate(random_graph(10, 0.5, 0), torch.tensor([1]), lambda t: t)
