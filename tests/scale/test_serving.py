"""New nodes: their terms and predictions are those of the whole extended graph."""

import pytest
import torch
from conftest import random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfgnn.basis import BASES, resolve_basis
from nfgnn.errors import UserError
from nfgnn.propagate import polynomial_terms, scaled_laplacian
from nfgnn.scale.serving import Neighbours, NewNodes, terms_of_new_nodes


def extended(edge_index: Tensor, weight: Tensor | None, new: NewNodes, known: int) -> tuple[Tensor, Tensor | None]:
    """The whole graph, both directions of every link."""
    source, target, added = new.both_ways(known)
    both = torch.cat([edge_index, torch.stack([source, target])], 1)
    return both, None if weight is None else torch.cat([weight, added.float()])


@given(
    n=st.integers(2, 25),
    m=st.integers(1, 6),
    links=st.integers(0, 15),
    K=st.integers(0, 6),
    basis=st.sampled_from(sorted(BASES)),
    self_loops=st.booleans(),
    weighted=st.booleans(),
    lambda_max=st.sampled_from([2.0, 1.7]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=150, deadline=None)
def test_terms_are_those_of_the_whole_extended_graph(
    n: int, m: int, links: int, K: int, basis: str, self_loops: bool, weighted: bool, lambda_max: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    known, x = random_graph(n, 0.15, seed), torch.randn(n + m, 3, generator=generator)
    ends = torch.stack(
        [torch.randint(0, n + m, (links,), generator=generator), n + torch.randint(0, m, (links,), generator=generator)]
    )
    pairs = torch.unique(ends.sort(0).values, dim=1)
    weight = added = None
    if weighted:
        weight = 0.5 + (known[0] * known[1] % 7).float()
        added = torch.rand(pairs.shape[1], generator=generator) + 0.1
    new = NewNodes(x[n:], pairs if weighted else ends, added)
    graph = Neighbours.of(known, weight, n)
    ours = terms_of_new_nodes(graph, x[:n].__getitem__, new, resolve_basis(basis), K, self_loops, lambda_max)
    operator = scaled_laplacian(*extended(known, weight, new, n), n + m, self_loops, lambda_max)
    whole = polynomial_terms(x.double(), operator, resolve_basis(basis), K)
    torch.testing.assert_close(ours, whole[:, n:].transpose(0, 1).float(), rtol=1e-4, atol=1e-5)


def test_only_the_ball_is_looked_at() -> None:
    """On a long path two links away are three nodes, whatever its length."""
    n = 1000
    path = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    x, seen = torch.randn(n, 2), []

    def features(nodes: Tensor) -> Tensor:
        seen.extend(nodes.tolist())
        return x[nodes]

    new = NewNodes(torch.randn(1, 2), torch.tensor([[500], [n]]))
    graph = Neighbours.of(torch.cat([path, path.flip(0)], 1), None, n)
    terms_of_new_nodes(graph, features, new, resolve_basis("chebyshev"), 2)
    assert sorted(seen) == [499, 500, 501]


def test_a_new_node_without_links_has_the_terms_of_an_isolated_one() -> None:
    new = NewNodes(torch.tensor([[1.0, 2.0]]), torch.empty(2, 0, dtype=torch.long))
    graph = Neighbours.of(random_graph(10, 0.3, 0), None, 10)
    terms = terms_of_new_nodes(graph, lambda nodes: torch.randn(nodes.numel(), 2), new, resolve_basis("chebyshev"), 4)
    torch.testing.assert_close(terms[0, :, 0], torch.tensor([1.0, 0.0, -1.0, 0.0, 1.0]))  # T_k(0)


@pytest.mark.parametrize(
    ("ends", "message"),
    [([[0], [12]], r"outside of 0…11"), ([[0, 10], [1, 3]], "joins two nodes of the known graph")],
)
def test_links_that_cannot_be_are_refused(ends: list[list[int]], message: str) -> None:
    new = NewNodes(torch.randn(2, 2), torch.tensor(ends))
    with pytest.raises(UserError, match=message):
        new.both_ways(10)
