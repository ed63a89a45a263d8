"""Operations on the values of edges: plain torch, sparse products, and the GPU's kernels."""

from collections.abc import Callable

import pytest
import torch
from helpers import triton_on_cpu  # noqa: F401  before any kernel is defined
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad_and_value, vmap

from nfgnn.nn import edge_operations
from nfgnn.nn.edge_list import EdgeList
from nfgnn.nn.edge_operations import pair_sums, softmax, weighted_sums

N = 12
NUM_EDGES = 60
RUNS = 2


@pytest.fixture
def edges() -> EdgeList:
    """Return directed and repeated edges. The last node has none, the first one has many."""
    torch.manual_seed(0)
    source, target = torch.randint(N - 1, (2, NUM_EDGES))
    target[:40] = 0
    return EdgeList(source, target, N)


def matrix(edges: EdgeList, weight: Tensor) -> Tensor:
    """Return the matrix that sums over the sources of every target."""
    dense = torch.zeros(N, N, dtype=weight.dtype)
    return dense.index_put((edges.target, edges.source), weight, accumulate=True)


def test_weighted_sums_are_products_with_a_matrix(edges: EdgeList) -> None:
    weight = torch.rand(NUM_EDGES, 2)
    x = torch.rand(N, 2, 3)
    out = weighted_sums(weight, x, edges)
    for head in range(2):
        torch.testing.assert_close(out[:, head], matrix(edges, weight[:, head]) @ x[:, head])


def test_softmax_sums_to_one_at_every_node(edges: EdgeList) -> None:
    score = torch.randn(NUM_EDGES, 2)
    weight = softmax(score, edges)
    for head in range(2):
        exact = matrix(edges, score[:, head].exp()).sum(1)[edges.target]
        torch.testing.assert_close(weight[:, head], score[:, head].exp() / exact)


def test_pair_sums_read_both_ends(edges: EdgeList) -> None:
    source, target = torch.randn(2, N, 3)
    out = pair_sums(source, target, edges)
    for edge in range(NUM_EDGES):
        expected = source[edges.source[edge]] + target[edges.target[edge]]
        assert torch.equal(out[edge], expected)


def inputs_of(operation: Callable[..., Tensor], heads: int, channels: int) -> list[Tensor]:
    """Return the inputs of two runs in float64."""
    nodes = torch.randn(RUNS, N, heads, dtype=torch.double)
    values = torch.randn(RUNS, NUM_EDGES, heads, dtype=torch.double)
    rows = torch.randn(RUNS, N, heads, channels, dtype=torch.double)
    return {pair_sums: [nodes, nodes.flip(1)], softmax: [values], weighted_sums: [values, rows]}[
        operation
    ]


@pytest.fixture(params=["kernels", "sparse products"])
def row_operations(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compute float64 with plain torch, and all else from the edges of every node."""

    def is_not_double(*tensors: Tensor) -> bool:
        return all(x.dtype != torch.double for x in tensors)

    monkeypatch.setattr(edge_operations, "_computes_by_rows", is_not_double)
    has_kernels = request.param == "kernels"
    monkeypatch.setattr(edge_operations, "is_fused", lambda x: has_kernels)
    return str(request.param)


@pytest.mark.parametrize(("heads", "channels"), [(1, 7), (3, 5), (20, 70)])
@pytest.mark.parametrize("operation", [pair_sums, softmax, weighted_sums])
def test_row_operations_equal_plain_torch_for_runs_at_once(
    operation: Callable[..., Tensor],
    heads: int,
    channels: int,
    edges: EdgeList,
    row_operations: str,
) -> None:
    """Values and gradients of two runs as one computation, against single runs in float64."""
    inputs = inputs_of(operation, heads, channels)
    factor = torch.randn_like(operation(*(part[0] for part in inputs), edges))

    def loss(*tensors: Tensor) -> Tensor:
        return (operation(*tensors, edges) * factor.to(tensors[0])).sum()

    mapped = vmap(grad_and_value(loss, argnums=tuple(range(len(inputs)))))
    gradients, value = mapped(*(part.float() for part in inputs))
    for run in range(RUNS):
        own = [part[run].clone().requires_grad_() for part in inputs]
        expected = loss(*own)
        expected.backward()
        assert value[run].item() == pytest.approx(expected.item(), rel=1e-4, abs=1e-3)
        for found, part in zip(gradients, own):
            torch.testing.assert_close(found[run].double(), part.grad, rtol=1e-4, atol=1e-4)


def test_large_scores_do_not_overflow(edges: EdgeList, row_operations: str) -> None:
    score = 1000 * torch.randn(NUM_EDGES, 1)
    weight = softmax(score, edges)
    torch.testing.assert_close(weight, softmax(score.double(), edges).float())


def test_a_score_that_is_not_a_number_spoils_its_node_only(
    edges: EdgeList, row_operations: str
) -> None:
    score = torch.randn(NUM_EDGES, 2)
    score[3, 1] = torch.nan
    weight = softmax(score, edges)
    torch.testing.assert_close(weight, softmax(score.double(), edges).float(), equal_nan=True)
    assert weight[edges.target == edges.target[3], 1].isnan().all()


def test_weights_and_values_may_differ_in_precision(edges: EdgeList, row_operations: str) -> None:
    """Under autocast, GAT has weights in float32 and values in half precision."""
    weight = torch.rand(NUM_EDGES, 2).requires_grad_()
    x = torch.rand(N, 2, 3).bfloat16().requires_grad_()
    out = weighted_sums(weight, x, edges)
    found = torch.autograd.grad(out.square().sum(), (weight, x))
    exact = weighted_sums(weight.double(), x.double(), edges)
    expected = torch.autograd.grad(exact.square().sum(), (weight, x))
    torch.testing.assert_close(out, exact.float())
    torch.testing.assert_close(found, expected)
    assert [grad.dtype for grad in found] == [torch.float32, torch.bfloat16]


@pytest.mark.parametrize("operation", [pair_sums, softmax, weighted_sums])
def test_first_and_second_derivatives(
    operation: Callable[..., Tensor], edges: EdgeList, row_operations: str
) -> None:
    """Against plain torch, whose operations have derivatives of all orders."""
    inputs = [part[0] for part in inputs_of(operation, heads=2, channels=3)]

    def derivatives(*tensors: Tensor) -> list[Tensor]:
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        out = operation(*leaves, edges)
        first = torch.autograd.grad(out.pow(3).sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum(grad.pow(2).sum() for grad in first), leaves)
        return [*first, *second]

    exact = derivatives(*inputs)
    found = derivatives(*(tensor.float() for tensor in inputs))
    for value, expected in zip(found, exact):
        torch.testing.assert_close(value.double(), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("operation", [pair_sums, softmax, weighted_sums])
def test_sparse_products_in_float64(operation: Callable[..., Tensor], edges: EdgeList) -> None:
    """Against finite differences."""
    inputs = [part[0].requires_grad_() for part in inputs_of(operation, heads=2, channels=3)]
    assert gradcheck(lambda *tensors: operation(*tensors, edges), inputs)
    assert gradgradcheck(lambda *tensors: operation(*tensors, edges), inputs)


def test_graph_without_edges() -> None:
    nothing = torch.empty(0, dtype=torch.long)
    edges = EdgeList(nothing, nothing, N)
    of_node = torch.randn(N, 2, requires_grad=True)
    x = torch.randn(N, 2, 3, requires_grad=True)
    out = weighted_sums(softmax(pair_sums(of_node, of_node, edges), edges), x, edges)
    gradients = torch.autograd.grad(out.sum(), (of_node, x))
    for tensor in (out, *gradients):
        assert not tensor.any()
