"""Terms of attached nodes equal those of the whole extended graph."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.new_nodes import GraphWithNewNodes, graphs_with_new_nodes
from helpers.store_graphs import files_of, make_store, small_graph
from hypothesis import given, settings

from nfgnn.errors import UserError
from nfgnn.spectral import resolve_basis
from nfgnn.store import NewNodes, Store, attached_terms


@given(case=graphs_with_new_nodes(max_new=20, max_edges=30, max_K=10, min_lambda=1.9))
@settings(max_examples=60, deadline=None)
def test_terms_equal_those_of_the_extended_graph(case: GraphWithNewNodes) -> None:
    stored = case.stored_terms().__getitem__
    graph = case.stored_graph()
    ours = attached_terms(graph, stored, case.new, case.basis, case.K, case.lambda_max, tolerance=0)
    whole = case.expected_terms()
    # With a small lambda_max, terms grow with K.
    largest = max(1.0, float(whole.abs().max()))
    torch.testing.assert_close(ours, whole, rtol=1e-5, atol=1e-5 * largest)


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
    chebyshev = resolve_basis("chebyshev")
    case = GraphWithNewNodes(x, data.edge_index, data.get("edge_weight"), new, chebyshev, 4)
    whole = case.expected_terms()
    for tolerance in (0.0, 1e-9):
        ours = opened.attach(new, tolerance)
        torch.testing.assert_close(ours, whole, rtol=1e-5, atol=1e-5)


def test_only_nodes_that_matter_are_read() -> None:
    """On a long path, walks of four edges reach two nodes to each side."""
    n = 1000
    path = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    both = torch.cat([path, path.flip(0)], 1)
    new = NewNodes(torch.randn(1, 2), torch.tensor([[500], [n]]))
    case = GraphWithNewNodes(torch.randn(n, 2), both, None, new, resolve_basis("monomial"), 4)
    read: list[int] = []

    class Indices(np.ndarray):
        def __getitem__(self, entry: np.ndarray) -> np.ndarray:
            found = np.asarray(self)[entry]
            read.extend(found.tolist())
            return found

    complete = case.stored_graph()
    graph = replace(complete, indices=complete.indices.view(Indices))
    stored = case.stored_terms().__getitem__
    ours = attached_terms(graph, stored, new, case.basis, 4, tolerance=0)
    assert set(read) <= {498, 499, 500, 501, 502}
    torch.testing.assert_close(ours, case.expected_terms())


def test_the_tolerance_bounds_the_work_and_the_error() -> None:
    """A hub of degree 400 whose neighbours have no other edges need not be read."""
    n = 401
    star = torch.stack([torch.zeros(400, dtype=torch.long), torch.arange(1, n)])
    both = torch.cat([star, star.flip(0)], 1)
    new = NewNodes(torch.randn(1, 3), torch.tensor([[7], [n]]))
    case = GraphWithNewNodes(torch.randn(n, 3), both, None, new, resolve_basis("chebyshev"), 6)
    stored = case.stored_terms().__getitem__
    whole = case.expected_terms()
    errors = []
    for tolerance in (1e-1, 1e-3, 1e-6, 0.0):
        ours = attached_terms(case.stored_graph(), stored, new, case.basis, 6, tolerance=tolerance)
        errors.append(float((ours - whole).abs().max()))
    assert max(errors) < 1e-5


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
