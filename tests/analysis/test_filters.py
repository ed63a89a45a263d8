"""Responses, subsets, Jaccard distances, intervals and the spread of homophily, each against plain Python."""

import math

import numpy as np
import pytest
import torch
from conftest import random_graph

from nfgnn.analysis import (
    JACCARD_INTERVALS,
    accuracy_by_homophily,
    centre_frequency,
    class_counts,
    distance_by_jaccard,
    filter_subsets,
    frequency_response,
    homophily_spread,
    local_homophily,
)
from nfgnn.data import mixed_graph
from nfgnn.spectral import Chebyshev
from nfgnn.spectral.response import high_pass, low_pass


def test_responses_of_known_filters() -> None:
    coefficients = torch.stack([Chebyshev().project(g, 3) for g in (low_pass, high_pass)])
    frequencies, curves = frequency_response(coefficients, "chebyshev", 11)
    assert torch.allclose(curves[0], (1 - frequencies / 2) ** 2)
    assert torch.allclose(curves[1], (frequencies / 2) ** 2)
    low, high = centre_frequency(frequencies, curves)
    assert float(low) < 0.5
    assert float(low + high) == pytest.approx(2)
    assert torch.allclose(frequency_response(coefficients[0], points=11)[1], curves[:1])


def test_subsets_are_the_papers() -> None:
    h1 = torch.tensor([0.8, 0.5, 0.5, 0.1, 0.1, math.nan])
    h2 = torch.tensor([0.1, 0.5, 0.9, 0.9, 0.5, 0.9])
    masks = filter_subsets(h1, h2)
    assert {name: mask.nonzero().flatten().tolist() for name, mask in masks.items()} == {
        "low-pass": [0],
        "band-pass": [1],
        "high-pass": [3],
    }


def pair_means(
    edge_index: torch.Tensor, y: torch.Tensor, psi: torch.Tensor
) -> dict[tuple[int, int], list[float]]:
    n, found = len(y), {}
    neighbours = [set(edge_index[1][edge_index[0] == v].tolist()) for v in range(n)]
    for i in range(n):
        for j in range(n):
            union = len(neighbours[i] | neighbours[j])
            if i == j or union == 0 or y[i] < 0 or y[j] < 0:
                continue
            common = len(neighbours[i] & neighbours[j])
            interval = (union - common) * 5 // union  # whole numbers: no rounding
            found.setdefault((int(y[i] != y[j]), interval), []).append(
                float((psi[i] - psi[j]).norm())
            )
    return found


def test_jaccard_against_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    edge_index = random_graph(30, 0.35, 1)
    y = torch.randint(-1, 3, (30,), generator=generator)
    psi = torch.randn(30, 4, generator=generator, dtype=torch.float64)
    monkeypatch.setattr("nfgnn.analysis.jaccard._CELLS", 100)  # several blocks
    result = distance_by_jaccard(edge_index, y, psi)
    expected = pair_means(edge_index, y, psi)
    for same in range(2):
        for interval in range(len(JACCARD_INTERVALS)):
            values = expected.get((same, interval), [])
            assert result.pairs[same, interval] == len(values)
            if values:
                assert result.mean[same, interval] == pytest.approx(np.mean(values))
    assert not result.error[result.pairs > 0].any()


def test_sampled_pairs_are_within_their_error() -> None:
    generator = torch.Generator().manual_seed(1)
    edge_index = random_graph(300, 0.03, 2)
    y = torch.randint(0, 3, (300,), generator=generator)
    psi = y[:, None] + 0.3 * torch.randn(300, 3, generator=generator)
    exact, sampled = (
        distance_by_jaccard(edge_index, y, psi),
        distance_by_jaccard(edge_index, y, psi, anchors=100),
    )
    enough = sampled.pairs > 200
    assert enough.sum() >= 4
    assert sampled.anchors == 100
    assert (np.abs(sampled.mean - exact.mean)[enough] < 4 * sampled.error[enough]).all()
    tries = [
        distance_by_jaccard(edge_index, y, psi, anchors=100, seed=s).mean[0, -1] for s in range(40)
    ]
    assert np.std(tries) == pytest.approx(
        sampled.error[0, -1], rel=0.4
    )  # the stated error is the true one


def test_intervals_of_homophily() -> None:
    h = torch.tensor([0, 0.19, 3 / 5, 0.6, 1, 1, math.nan], dtype=torch.float64)
    correct = torch.tensor([True, False, True, True, True, False, True])
    result = accuracy_by_homophily(correct, h)
    assert result.nodes.tolist() == [2, 0, 0, 2, 2]
    assert result.accuracy[[0, 3, 4]].tolist() == [0.5, 1, 0.5]
    assert result.accuracy[1:3].isnan().all()


def test_spread_tells_mixed_patterns_from_chance() -> None:
    def spread(**options: object) -> dict[str, float]:
        data = mixed_graph(4000, seed=1, **options)  # type: ignore[arg-type]
        return homophily_spread(class_counts(data.edge_index, data.y), data.y, data.edge_index)

    chance, mixed = spread(homophily=(0.4, 0.4)), spread(homophily=(0.8, 0.1))
    assert abs(chance["correlation"]) < 3 * chance["correlation_error"] < 0.05
    assert chance["deviation"] == pytest.approx(chance["by_chance"], rel=0.05)
    # Two patterns of equal weight: correlation = variance of the probability / p (1 - p).
    assert mixed["correlation"] == pytest.approx(0.35**2 / (0.45 * 0.55), abs=0.03)
    assert min(mixed["above_half"], mixed["below_chance"]) > 0.3


def test_spread_by_definition() -> None:
    edge_index = random_graph(40, 0.2, 6)
    y = torch.randint(0, 2, (40,), generator=torch.Generator().manual_seed(2))
    found = homophily_spread(class_counts(edge_index, y), y, edge_index)
    row, col = edge_index
    agree = (y[row] == y[col]).double()
    p = torch.stack([agree[y[row] == c].mean() for c in range(2)])[y[row]]
    e, above, below = agree - p, 0.0, 0.0
    for v in range(40):
        links = (row == v).nonzero().flatten().tolist()
        pairs = [float(e[a] * e[b]) for a in links for b in links if a != b]
        if pairs:
            above, below = (
                above + sum(pairs) / len(pairs),
                below + float(p[links[0]] * (1 - p[links[0]])),
            )
    assert found["correlation"] == pytest.approx(above / below)
    h = local_homophily(edge_index, y)
    assert found["above_half"] == pytest.approx(float((h[~h.isnan()] > 0.5).double().mean()))


def test_no_labels_no_spread() -> None:
    y = torch.full((10,), -1)
    edge_index = random_graph(10, 0.5, 0)
    assert all(
        math.isnan(v) for v in homophily_spread(class_counts(edge_index, y), y, edge_index).values()
    )
