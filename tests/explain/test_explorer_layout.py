"""Principal components against singular values, and the force-directed layout of two blocks."""

import numpy as np
import torch

from nfgnn.explain.explorer.layout import force_layout, principal_components


def test_principal_components_equal_singular_vectors() -> None:
    psi = torch.randn(60, 5, generator=torch.Generator().manual_seed(0)).numpy()
    place, share = principal_components(psi)
    centred = psi - psi.mean(0)
    left, values, _ = np.linalg.svd(centred.astype(float), full_matrices=False)
    np.testing.assert_allclose(np.abs(place), np.abs(left[:, :2] * values[:2]), atol=1e-5)
    np.testing.assert_allclose(share, values[:2] ** 2 / (values**2).sum())
    assert principal_components(np.ones((5, 3))) is None


def test_force_layout_separates_blocks() -> None:
    rng = np.random.default_rng(0)
    block = np.repeat([0, 1], 40)
    probability = np.where(block[:, None] == block, 0.3, 0.01)
    edges = np.triu(rng.random((80, 80)) < probability, 1)
    edge_index = np.stack(np.nonzero(edges | edges.T))
    place = force_layout(edge_index, 80)
    assert np.isfinite(place).all()
    np.testing.assert_array_equal(place, force_layout(edge_index, 80))
    distance = np.linalg.norm(place[:, None] - place, axis=2)
    assert distance[block[:, None] != block].mean() > 1.5 * distance[block[:, None] == block].mean()
    assert np.isfinite(force_layout(np.empty((2, 0), np.int64), 1)).all()
