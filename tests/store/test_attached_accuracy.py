"""With the default tolerance, rows and logits of new nodes are those of the whole graph."""

import numpy as np
import pytest
import torch
from helpers.new_nodes import GraphWithNewNodes
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfgnn.nn import ScalableNFGNN
from nfgnn.spectral import polynomial_terms, resolve_basis
from nfgnn.store import NewNodes, attached_terms

BOUND = 1e-5
"""Documented in ``docs/serving.md``."""
NODES = 2000


def power_law(rng: np.random.Generator) -> np.ndarray:
    """The expected degree falls with the number of the node; the first ones are hubs."""
    source = rng.integers(0, NODES, 5 * NODES)
    return np.stack([source, (NODES * rng.random(5 * NODES) ** 3).astype(np.int64)])


def regular(rng: np.random.Generator) -> np.ndarray:
    """Five cycles through all nodes."""
    rounds = [rng.permutation(NODES) for _ in range(5)]
    return np.concatenate([np.stack([order, np.roll(order, 1)]) for order in rounds], 1)


def star(rng: np.random.Generator) -> np.ndarray:
    return np.stack([np.zeros(NODES - 1, dtype=np.int64), np.arange(1, NODES)])


def communities(rng: np.random.Generator) -> np.ndarray:
    """Dense groups of 20 nodes, with hubs between them."""
    source = rng.integers(0, NODES, 6 * NODES)
    inside = np.stack([source, source - source % 20 + rng.integers(0, 20, 6 * NODES)])
    return np.concatenate([inside, power_law(rng)[:, : 2 * NODES]], 1)


FAMILIES = {
    "power law": power_law,
    "regular": regular,
    "star": star,
    "communities": communities,
}


def undirected(ends: np.ndarray) -> Tensor:
    ends = ends[:, ends[0] != ends[1]]
    both = torch.from_numpy(np.concatenate([ends, ends[::-1]], 1))
    return torch.unique(both, dim=1)


@pytest.mark.parametrize("family", FAMILIES)
@given(
    seed=st.integers(0, 10**6),
    K=st.sampled_from([3, 6, 10]),
    m=st.sampled_from([1, 1, 3]),
    self_loops=st.booleans(),
)
@settings(max_examples=6, deadline=None)
def test_rows_and_logits_equal_those_of_the_whole_graph(
    family: str, seed: int, K: int, m: int, self_loops: bool
) -> None:
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    edges = undirected(FAMILIES[family](rng))
    # A new node prefers small numbers: the hubs of a power law, the centre of a star.
    neighbours = (NODES * rng.random((m, 6)) ** 3).astype(np.int64)
    ends = np.stack([neighbours.ravel(), np.repeat(np.arange(NODES, NODES + m), 6)])
    new = NewNodes(torch.randn(m, 4), torch.from_numpy(ends))
    chebyshev = resolve_basis("chebyshev")
    case = GraphWithNewNodes(torch.randn(NODES, 4), edges, None, new, chebyshev, K, self_loops)
    # Rounding of the stored terms is not what this test is about.
    stored = polynomial_terms(case.x.double(), case.operator(), case.basis, K).transpose(0, 1)
    found = attached_terms(case.stored_graph(), stored.__getitem__, new, case.basis, K)
    expected = case.expected_terms()
    assert float((found - expected).abs().max()) < BOUND
    model = ScalableNFGNN(4, 5, K=K, hidden_channels=16).eval()
    with torch.no_grad():
        difference = model.forward_rows(found) - model.forward_rows(expected)
    assert float(difference.abs().max()) < BOUND
