"""Coefficient distance by Jaccard distance against a loop over all pairs."""

import numpy as np
import pytest
import torch
from conftest import random_graph

from nfgnn.analysis import JACCARD_INTERVALS, distance_by_jaccard


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


def test_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    edge_index = random_graph(30, 0.35, 1)
    y = torch.randint(-1, 3, (30,), generator=generator)
    psi = torch.randn(30, 4, generator=generator, dtype=torch.float64)
    monkeypatch.setattr("nfgnn.analysis.jaccard._MAX_CELLS", 100)  # several blocks
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
