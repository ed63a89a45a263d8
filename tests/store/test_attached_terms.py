"""Terms of attached nodes equal those of the whole extended graph."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import random_graph
from helpers.store_graphs import files_of, make_store, small_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfgnn.errors import UserError
from nfgnn.spectral import BASES, polynomial_terms, resolve_basis, scaled_laplacian
from nfgnn.store import NewNodes, Store, StoredGraph, attached_terms


def extended_terms(
    edge_index: Tensor,
    weight: Tensor | None,
    x: Tensor,
    new: NewNodes,
    basis: str,
    K: int,
    self_loops: bool = False,
    lambda_max: float = 2.0,
) -> Tensor:
    """Return the rows of the new nodes, from all features and edges in float64."""
    n = len(x)
    source, target, added = new.directed_edges(n)
    both = torch.cat([edge_index, torch.stack([source, target])], 1)
    if weight is not None:
        weight = torch.cat([weight.double(), added])
    operator = scaled_laplacian(both, weight, n + len(new.x), self_loops, lambda_max)
    everything = torch.cat([x, new.x]).double()
    terms = polynomial_terms(everything, operator, resolve_basis(basis), K)
    return terms[:, n:].transpose(0, 1).float()


@given(
    n=st.integers(2, 25),
    m=st.integers(1, 20),
    edges=st.integers(0, 30),
    K=st.integers(0, 10),
    basis=st.sampled_from(sorted(BASES)),
    self_loops=st.booleans(),
    weighted=st.booleans(),
    lambda_max=st.sampled_from([2.0, 1.9]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_terms_equal_those_of_the_extended_graph(
    n: int,
    m: int,
    edges: int,
    K: int,
    basis: str,
    self_loops: bool,
    weighted: bool,
    lambda_max: float,
    seed: int,
) -> None:
    generator = torch.Generator().manual_seed(seed)
    known = random_graph(n, 0.15, seed)
    x = torch.randn(n + m, 3, generator=generator)
    sources = torch.randint(0, n + m, (edges,), generator=generator)
    targets = n + torch.randint(0, m, (edges,), generator=generator)
    pairs = torch.unique(torch.stack([sources, targets]).sort(0).values, dim=1)
    weight = added = None
    if weighted:
        weight = 0.5 + (known[0] * known[1] % 7).float()
        added = torch.rand(pairs.shape[1], generator=generator) + 0.1
    new = NewNodes(x[n:], pairs, added)
    operator = scaled_laplacian(known, weight, n, self_loops, lambda_max)
    stored = polynomial_terms(x[:n], operator, resolve_basis(basis), K).transpose(0, 1)
    graph = StoredGraph(
        operator.indptr.numpy().astype(np.int64),
        operator.indices.numpy(),
        operator.scale.numpy(),
        None if operator.weight is None else operator.weight.numpy(),
        self_loops,
        "graph",
    )
    ours = attached_terms(
        graph, stored.__getitem__, new, resolve_basis(basis), K, lambda_max, tolerance=0
    )
    whole = extended_terms(known, weight, x[:n], new, basis, K, self_loops, lambda_max)
    # With a small lambda_max, terms grow with K.
    torch.testing.assert_close(
        ours, whole, rtol=1e-5, atol=1e-5 * max(1.0, float(whole.abs().max()))
    )


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Store, bool]:
    data = small_graph(weighted=request.param)
    return make_store(data, tmp_path / "s", rows="all", serve=True), request.param


def test_terms_from_a_store_equal_those_of_the_extended_graph(store: tuple[Store, bool]) -> None:
    opened, weighted = store
    data = small_graph(weighted=weighted)
    ends = torch.tensor([[2, 7, 0, 61], [60, 60, 61, 60]])  # a hub, a node, an isolated node
    added = torch.tensor([0.5, 1.0, 2.0, 0.3]) if weighted else None
    new = NewNodes(opened.scaling.apply(torch.randn(2, 7)), ends, added)
    x = opened.scaling.apply(data.x)
    whole = extended_terms(data.edge_index, data.get("edge_weight"), x, new, "chebyshev", 4)
    for tolerance in (0.0, 1e-9):
        ours = opened.attach(new, tolerance)
        torch.testing.assert_close(ours, whole, rtol=1e-5, atol=1e-5)


def test_only_nodes_that_matter_are_read() -> None:
    """On a long path, walks of four edges reach two nodes to each side."""
    n = 1000
    path = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    operator = scaled_laplacian(torch.cat([path, path.flip(0)], 1), None, n)
    x = torch.randn(n, 2)
    stored = polynomial_terms(x, operator, resolve_basis("monomial"), 4).transpose(0, 1)
    read: list[int] = []

    class Indices(np.ndarray):
        def __getitem__(self, entry: np.ndarray) -> np.ndarray:
            found = np.asarray(self)[entry]
            read.extend(found.tolist())
            return found

    indices = operator.indices.numpy().view(Indices)
    indptr = operator.indptr.numpy().astype(np.int64)
    graph = StoredGraph(indptr, indices, operator.scale.numpy(), None, False, "path")
    new = NewNodes(torch.randn(1, 2), torch.tensor([[500], [n]]))
    ours = attached_terms(graph, stored.__getitem__, new, resolve_basis("monomial"), 4, tolerance=0)
    assert set(read) <= {498, 499, 500, 501, 502}
    both = torch.cat([path, path.flip(0)], 1)
    torch.testing.assert_close(ours, extended_terms(both, None, x, new, "monomial", 4))


def test_the_tolerance_bounds_the_work_and_the_error() -> None:
    """Behind a hub of degree 400 nothing matters, so its edges need not be read."""
    n = 401
    star = torch.stack([torch.zeros(400, dtype=torch.long), torch.arange(1, n)])
    both = torch.cat([star, star.flip(0)], 1)
    operator = scaled_laplacian(both, None, n)
    x = torch.randn(n, 3)
    stored = polynomial_terms(x, operator, resolve_basis("chebyshev"), 6).transpose(0, 1)
    indptr = operator.indptr.numpy().astype(np.int64)
    graph = StoredGraph(
        indptr, operator.indices.numpy(), operator.scale.numpy(), None, False, "star"
    )
    new = NewNodes(torch.randn(1, 3), torch.tensor([[7], [n]]))
    whole = extended_terms(both, None, x, new, "chebyshev", 6)
    errors = []
    for tolerance in (1e-1, 1e-3, 1e-6, 0.0):
        basis = resolve_basis("chebyshev")
        ours = attached_terms(graph, stored.__getitem__, new, basis, 6, tolerance=tolerance)
        errors.append(float((ours - whole).abs().max()))
    assert errors[-1] < 1e-5
    assert errors[2] < 1e-5
    assert errors[0] < 1


def test_stores_without_a_graph_are_rejected(tmp_path: Path) -> None:
    store = make_store(small_graph(), tmp_path / "s", rows="all")
    new = NewNodes(torch.zeros(1, 7), torch.tensor([[2], [60]]))
    with pytest.raises(UserError, match=r"does not hold the graph.*--serve"):
        store.attach(new)
    with pytest.raises(UserError, match="needs the terms of all nodes"):
        make_store(small_graph(), tmp_path / "t", serve=True)


def test_interrupted_work_keeps_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = small_graph()
    expected = make_store(data, tmp_path / "whole", rows="all", serve=True)

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["nfgnn.store.precompute"], "assemble_rows", interrupt)
        with pytest.raises(KeyboardInterrupt):
            make_store(data, tmp_path / "s", rows="all", serve=True)
    store = make_store(data, tmp_path / "s", rows="all", serve=True)
    assert files_of(store.path) == files_of(expected.path)
    assert not make_store(data, tmp_path / "other", rows="all").manifest.has_graph
