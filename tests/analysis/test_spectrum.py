"""Spectra, spectral densities and feature frequencies against dense eigenvalues."""

import math

import pytest
import torch
from conftest import random_graph
from helpers import dense

from nfgnn.analysis import eigenvalues, feature_frequency, spectral_density, spectrum
from nfgnn.analysis.spectrum import chebyshev_moments, cumulative
from nfgnn.spectral import Chebyshev


def test_all_eigenvalues() -> None:
    edge_index = random_graph(40, 0.15, 0)
    values = torch.linalg.eigvalsh(dense.laplacian(edge_index, 40))
    assert torch.allclose(eigenvalues(edge_index, 40), values, atol=1e-10)
    found = spectrum(edge_index, 40, bins=8)
    assert found.exact
    assert float(found.shares.sum()) == pytest.approx(1)
    assert torch.equal(found.shares * 40, torch.histc(values.round(decimals=9), 8, 0, 2))


def test_edge_weights() -> None:
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
    t = torch.linalg.eigvalsh(dense.laplacian(edge_index, 30)) - 1
    expected = Chebyshev().evaluate(t, 24).mean(0)
    found = chebyshev_moments(edge_index, torch.eye(30, dtype=torch.float64), 25).mean(1)
    assert torch.allclose(found, expected, atol=1e-12)


def test_density_is_a_distribution_near_the_eigenvalues() -> None:
    edge_index = random_graph(300, 0.05, 2)
    limits = torch.linspace(0, 2, 21, dtype=torch.float64)
    estimate = spectral_density(edge_index, 300, limits, moments=60, probes=30)
    assert bool((estimate.shares > -1e-9).all())
    assert float(estimate.shares.sum()) == pytest.approx(1)
    t = torch.linalg.eigvalsh(dense.laplacian(edge_index, 300)) - 1
    exact = cumulative(Chebyshev().evaluate(t, 59).mean(0)[:, None], limits - 1)[:, 0].diff()
    assert bool(
        ((estimate.shares - exact).abs() < 5 * estimate.error + 1e-6).all()
    )  # float32 beside the error


def test_cumulative_is_the_share_below_within_its_resolution() -> None:
    t = torch.linalg.eigvalsh(dense.laplacian(random_graph(300, 0.05, 2), 300)) - 1
    moments, limits = (
        Chebyshev().evaluate(t, 79).mean(0)[:, None],
        torch.linspace(-1, 1, 21, dtype=torch.float64),
    )
    below = (t[None] < limits[:, None]).double().mean(1)
    late, early = (
        cumulative(moments, limits + shift)[:, 0] for shift in (4 * math.pi / 80, -4 * math.pi / 80)
    )
    assert bool(((early - 0.02 <= below) & (below <= late + 0.02)).all())


def test_frequency_of_features() -> None:
    n = 30
    edge_index = random_graph(n, 0.3, 5)
    x = torch.randn(n, 5, generator=torch.Generator().manual_seed(0))
    centred = (x - x.mean(0)).double()
    expected = float(
        (centred * (dense.laplacian(edge_index, n) @ centred)).sum() / centred.square().sum()
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
        (centred * (dense.laplacian(edge_index, n) @ centred)).sum() / centred.square().sum()
    )
    assert dense_value == pytest.approx(expected, abs=0.05)
