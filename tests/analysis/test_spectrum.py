"""Spectra and translated kernels against the dense eigenbasis."""

import math

import networkx as nx
import pytest
import torch
from conftest import random_graph
from helpers import dense
from torch import Tensor

from nfgnn.analysis import (
    eigenvalues,
    energy_by_hop,
    feature_frequency,
    hop_distance,
    spectral_density,
    spectrum,
    structure,
    translate,
)
from nfgnn.analysis.spectrum import chebyshev_moments, cumulative
from nfgnn.spectral import Bernstein, Chebyshev, Monomial


def laplacian(edge_index: Tensor, n: int) -> Tensor:
    return torch.eye(n, dtype=torch.float64) - dense.normalised(dense.adjacency(edge_index, n))


def test_all_eigenvalues() -> None:
    edge_index = random_graph(40, 0.15, 0)
    values = torch.linalg.eigvalsh(laplacian(edge_index, 40))
    assert torch.allclose(eigenvalues(edge_index, 40), values, atol=1e-10)
    found = spectrum(edge_index, 40, bins=8)
    assert found.exact
    assert float(found.shares.sum()) == pytest.approx(1)
    assert torch.equal(found.shares * 40, torch.histc(values.round(decimals=9), 8, 0, 2))


def test_weights_of_links_count() -> None:
    edge_index = random_graph(20, 0.3, 7)
    weight = torch.rand(20, 20, generator=torch.Generator().manual_seed(0))
    weight = (weight + weight.T)[edge_index[0], edge_index[1]]
    values = torch.linalg.eigvalsh(
        torch.eye(20, dtype=torch.float64)
        - dense.normalised(dense.adjacency(edge_index, 20, weight))
    )
    assert torch.allclose(eigenvalues(edge_index, 20, weight), values, atol=1e-10)


def test_moments_are_traces() -> None:
    edge_index = random_graph(30, 0.2, 1)
    t = torch.linalg.eigvalsh(laplacian(edge_index, 30)) - 1
    expected = Chebyshev().evaluate(t, 24).mean(0)
    found = chebyshev_moments(edge_index, torch.eye(30, dtype=torch.float64), 25).mean(1)
    assert torch.allclose(found, expected, atol=1e-12)


def test_density_is_a_distribution_near_the_eigenvalues() -> None:
    edge_index = random_graph(300, 0.05, 2)
    limits = torch.linspace(0, 2, 21, dtype=torch.float64)
    estimate = spectral_density(edge_index, 300, limits, moments=60, probes=30)
    assert bool((estimate.shares > -1e-9).all())
    assert float(estimate.shares.sum()) == pytest.approx(1)
    t = torch.linalg.eigvalsh(laplacian(edge_index, 300)) - 1
    exact = cumulative(Chebyshev().evaluate(t, 59).mean(0)[:, None], limits - 1)[:, 0].diff()
    assert bool(
        ((estimate.shares - exact).abs() < 5 * estimate.error + 1e-6).all()
    )  # float32 beside the error


def test_cumulative_is_the_share_below_up_to_its_width() -> None:
    t = torch.linalg.eigvalsh(laplacian(random_graph(300, 0.05, 2), 300)) - 1
    moments, limits = (
        Chebyshev().evaluate(t, 79).mean(0)[:, None],
        torch.linspace(-1, 1, 21, dtype=torch.float64),
    )
    below = (t[None] < limits[:, None]).double().mean(1)
    late, early = (
        cumulative(moments, limits + shift)[:, 0] for shift in (4 * math.pi / 80, -4 * math.pi / 80)
    )
    assert bool(((early - 0.02 <= below) & (below <= late + 0.02)).all())


@pytest.mark.parametrize("basis", [Chebyshev(), Monomial(), Bernstein()])
def test_translation_in_the_eigenbasis(basis: Chebyshev | Monomial | Bernstein) -> None:
    n, K = 25, 4
    edge_index = random_graph(n, 0.2, 3)
    values, U = torch.linalg.eigh(laplacian(edge_index, n))
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
def test_nothing_beyond_k_hops(K: int) -> None:
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


def test_a_function_needs_a_degree() -> None:
    with pytest.raises(ValueError, match="degree K"):
        translate(random_graph(10, 0.5, 0), torch.tensor([1]), lambda t: t)


@pytest.mark.parametrize("seed", range(4))
def test_structure_against_networkx(seed: int) -> None:
    n = 40
    graph = (
        nx.gnp_random_graph(n, 0.03, seed=seed)
        if seed % 2
        else nx.bipartite.random_graph(18, 22, 0.05, seed=seed)
    )
    one_way = torch.tensor(list(graph.edges)).T
    found = structure(torch.cat([one_way, one_way.flip(0)], 1), n)
    linked = [part for part in nx.connected_components(graph) if len(part) > 1]
    assert found["components"] == nx.number_connected_components(graph)
    assert found["largest_component"] == max(map(len, nx.connected_components(graph))) / n
    assert found["isolated"] == nx.number_of_isolates(graph)
    assert found["bipartite"] == all(nx.is_bipartite(graph.subgraph(part)) for part in linked)


def test_frequency_of_features() -> None:
    n = 30
    edge_index = random_graph(n, 0.3, 5)
    x = torch.randn(n, 5, generator=torch.Generator().manual_seed(0))
    centred = (x - x.mean(0)).double()
    expected = float(
        (centred * (laplacian(edge_index, n) @ centred)).sum() / centred.square().sum()
    )
    assert feature_frequency(x, edge_index) == pytest.approx(expected, abs=1e-6)
    assert math.isnan(feature_frequency(torch.ones(n, 3), edge_index))
    wide = torch.randn(n, 400, generator=torch.Generator().manual_seed(1))
    dense_value, sparse_value = (
        feature_frequency(wide, edge_index),
        feature_frequency(wide.to_sparse_csr(), edge_index),
    )
    assert sparse_value == pytest.approx(dense_value, abs=1e-5)
    centred = (wide - wide.mean(0)).double()
    expected = float(
        (centred * (laplacian(edge_index, n) @ centred)).sum() / centred.square().sum()
    )
    assert dense_value == pytest.approx(expected, abs=0.05)
