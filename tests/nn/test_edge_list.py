"""Lists of edges: what they hold, and that a graph is prepared once."""

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nfgnn.nn import edge_list
from nfgnn.nn.edge_list import edges_of_matrix, edges_with_self_loops, normalised_edges
from nfgnn.nn.models import find_model
from nfgnn.spectral import CSR

N = 5


@pytest.fixture
def edge_index() -> Tensor:
    """Return directed edges with a self-loop and a repeated edge; node 4 has no edges."""
    return torch.tensor([[0, 1, 1, 2, 3, 3], [1, 2, 2, 2, 0, 1]])


def dense(source: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Return the matrix that sums over the sources of every target."""
    return torch.zeros(N, N, dtype=weight.dtype).index_put((target, source), weight, True)


def test_every_node_has_one_self_loop(edge_index: Tensor) -> None:
    edges = edges_with_self_loops(edge_index, N)
    other = edge_index[:, edge_index[0] != edge_index[1]]
    expected = dense(*other, torch.ones(other.shape[1])) + torch.eye(N)
    ones = torch.ones(edges.source.numel())
    assert torch.equal(dense(edges.source, edges.target, ones), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_edges_are_normalised_by_the_roots_of_both_degrees(
    edge_index: Tensor, weighted: bool
) -> None:
    weight = 1 + torch.rand(edge_index.shape[1]) if weighted else None
    edges, norm = normalised_edges(edge_index, weight, N, torch.float64)
    values = torch.ones(edge_index.shape[1]) if weight is None else weight
    matrix = dense(*edge_index, values.double()).fill_diagonal_(0)
    degree = matrix.sum(1)
    root = torch.where(degree > 0, degree.rsqrt(), 0.0)
    found = dense(edges.source, edges.target, norm)
    torch.testing.assert_close(found, root[:, None] * matrix * root)


def test_edges_of_a_matrix_lead_from_column_to_row(edge_index: Tensor) -> None:
    values = torch.ones(edge_index.shape[1])
    matrix = CSR.from_tensor(dense(*edge_index, values).to_sparse_csr())
    edges = edges_of_matrix(matrix)
    assert edges_of_matrix(matrix) is edges
    ones = torch.ones(edges.source.numel())
    assert torch.equal(dense(edges.source, edges.target, ones), matrix.tensor.to_dense().sign())


def test_reversed_edges_have_the_rows_of_the_other_end(edge_index: Tensor) -> None:
    edges = edges_with_self_loops(edge_index, N)
    for found, expected in zip(edges.reversed.by_target, edges.by_source):
        assert torch.equal(found, expected)
    for found, expected in zip(edges.reversed.by_source, edges.by_target):
        assert torch.equal(found, expected)
    assert edges.reversed.reversed is edges


def count_preparations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by a name whenever edges are prepared."""
    calls: list[str] = []

    def count(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return original(*args, **kwargs)

        return counted

    for name in ("add_remaining_self_loops", "remove_self_loops"):
        monkeypatch.setattr(edge_list, name, count(name, getattr(edge_list, name)))
    return calls


@pytest.mark.parametrize(
    ("name", "steps"),
    [("GAT", ["add_remaining_self_loops"]), ("FAGCN", ["remove_self_loops"])],
)
def test_a_model_prepares_a_graph_once(
    name: str, steps: list[str], edge_index: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count_preparations(monkeypatch)
    torch.manual_seed(0)
    model = find_model(name).model(3, 2).eval()
    x = torch.rand(N, 3)
    weight = torch.ones(edge_index.shape[1])
    with torch.inference_mode():
        before = model(x, edge_index, weight)
    model(x, edge_index, weight).sum().backward()
    assert calls == steps
    edge_index[1, 0] = 4
    after = model(x, edge_index, weight)
    assert calls == 2 * steps
    assert not torch.allclose(after, before)
    torch.testing.assert_close(after, model(x, edge_index.clone(), weight))


def test_a_deleted_graph_leaves_the_cache(edge_index: Tensor) -> None:
    gc.collect()
    before = len(edge_list._CACHE)
    weight = torch.rand(edge_index.shape[1])
    copy = edge_index.clone()
    edges_with_self_loops(copy, N)
    normalised_edges(copy, weight, N, torch.float32)
    assert len(edge_list._CACHE) == before + 2
    del copy
    gc.collect()
    assert len(edge_list._CACHE) == before


def test_weights_that_require_a_gradient_are_not_cached(edge_index: Tensor) -> None:
    weight = torch.rand(edge_index.shape[1], requires_grad=True)
    with torch.no_grad():
        normalised_edges(edge_index, weight, N, torch.float32)
    for _ in range(2):
        weight.grad = None
        normalised_edges(edge_index, weight, N, torch.float32)[1].square().sum().backward()
        assert weight.grad is not None


def test_weights_of_zero_have_a_gradient(edge_index: Tensor) -> None:
    """All edges that end in node 1 have the weight zero, so its degree is zero."""
    weight = torch.where(edge_index[1] == 1, 0.0, 1.0).requires_grad_()
    _, norm = normalised_edges(edge_index, weight, N, torch.float32)
    (gradient,) = torch.autograd.grad(norm.square().sum(), weight)
    assert norm.isfinite().all()
    assert gradient.isfinite().all()
