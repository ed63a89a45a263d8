"""What all filter layers offer to models of other people, for every gate and basis."""

import copy
import io
import pickle

import pytest
import torch
from conftest import random_graph
from helpers.layers import KINDS, every_layer, make_layer, output_and_gradients
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_undirected

from nfgnn.errors import UserError
from nfgnn.nn import NFConv, PolyConv
from nfgnn.nn.gates import ACTIVATIONS
from nfgnn.spectral import scaled_laplacian

N, CHANNELS = 30, 4


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(1)


def symmetric_weight(edge_index: torch.Tensor) -> torch.Tensor:
    """Weights between 0.5 and 1.5, the same for both directions of an edge."""
    return 0.5 + (edge_index.sum(0) * edge_index.prod(0) % 11).double() / 11


@every_layer
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_precisions(kind: str, basis: str, dtype: torch.dtype) -> None:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS, dtype=torch.float64)
    layer = make_layer(kind, basis).to(dtype)
    exact = copy.deepcopy(layer).double()
    expected = output_and_gradients(exact, lambda x: exact(x, edge_index), x.to(dtype).double())
    found = output_and_gradients(layer, lambda x: layer(x, edge_index), x.to(dtype))
    # Gradients that cancel out are compared on the scale of the others.
    scale = max(value.abs().max() for name, value in expected.items() if name != "out")
    error = {torch.bfloat16: 0.03, torch.float16: 0.004, torch.float64: 1e-12}[dtype]
    for name, value in found.items():
        assert value.dtype == dtype, name
        own_scale = expected["out"].abs().max() if name == "out" else scale
        difference = (value.double() - expected[name]).abs().max() / own_scale
        assert difference < error, (name, float(difference))


@every_layer
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_computes_in_float32(kind: str, basis: str, dtype: torch.dtype) -> None:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    layer = make_layer(kind, basis)
    linear = nn.Linear(CHANNELS, CHANNELS)

    def call(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype):
            assert linear(x).dtype == dtype
            out = layer(x, edge_index)
            layer(linear(x.detach()), edge_index).sum().backward()  # also inside
            layer.zero_grad()
            return out

    expected = output_and_gradients(layer, lambda x: layer(x, edge_index), x)
    found = output_and_gradients(layer, call, x)
    for name, value in found.items():
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, expected[name], msg=name)


@every_layer
def test_copies_and_pickles_compute_the_same(kind: str, basis: str) -> None:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    layer = make_layer(kind, basis)
    expected = output_and_gradients(layer, lambda x: layer(x, edge_index), x)
    saved = io.BytesIO()
    torch.save(layer, saved)
    saved.seek(0)
    fresh = make_layer(kind, basis)
    for parameter in fresh.parameters():
        nn.init.zeros_(parameter)
    fresh.load_state_dict(layer.state_dict())
    copies = [
        copy.deepcopy(layer),
        pickle.loads(pickle.dumps(layer)),
        torch.load(saved, weights_only=False),
        fresh,
        layer.to("cpu"),
    ]
    for other in copies:
        found = output_and_gradients(other, lambda x, other=other: other(x, edge_index), x)
        for name, value in found.items():
            assert torch.equal(value, expected[name]), name
    nn.init.zeros_(next(copies[0].parameters()))
    assert torch.equal(layer(x, edge_index), expected["out"])  # nothing is shared


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_layers_with_every_activation_can_be_pickled(activation: str) -> None:
    conv = make_layer("input", activation=activation)
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    assert torch.equal(pickle.loads(pickle.dumps(conv))(x, edge_index), conv(x, edge_index))


def test_a_prepared_operator_can_be_copied_and_pickled() -> None:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    operator = scaled_laplacian(edge_index, num_nodes=N)
    conv = make_layer("agreement")
    expected = conv(x, operator)
    for other in (copy.deepcopy(operator), pickle.loads(pickle.dumps(operator))):
        assert torch.equal(conv(x, other), expected)


@every_layer
def test_a_batch_of_graphs_equals_the_graphs_one_by_one(kind: str, basis: str) -> None:
    sizes = [12, 1, 20, 7]
    graphs = [
        Data(x=torch.randn(n, CHANNELS), edge_index=random_graph(n, 0.4, seed))
        for seed, n in enumerate(sizes)
    ]
    regular = Data(x=torch.randn(9, CHANNELS), edge_index=cycle_graph_edges(9))
    graphs.append(regular)  # whose degrees have no deviation
    batch = Batch.from_data_list(graphs)
    layer = make_layer(kind, basis)
    out, psi = layer(batch.x, batch.edge_index, None, batch.batch, return_coefficients=True)
    for number, graph in enumerate(graphs):
        own, own_psi = layer(graph.x, graph.edge_index, return_coefficients=True)
        torch.testing.assert_close(out[batch.batch == number], own, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(psi[batch.batch == number], own_psi, rtol=1e-4, atol=1e-5)


def cycle_graph_edges(n: int) -> torch.Tensor:
    node = torch.arange(n)
    return to_undirected(torch.stack([node, (node + 1) % n]))


def test_only_the_agreement_gate_depends_on_the_batch() -> None:
    first, second = random_graph(12, 0.4, 0), cycle_graph_edges(10)
    edge_index, x = torch.cat([first, second + 12], 1), torch.randn(22, CHANNELS)
    batch = torch.arange(2).repeat_interleave(torch.tensor([12, 10]))
    for kind in KINDS:
        layer = make_layer(kind)
        same = torch.allclose(layer(x, edge_index), layer(x, edge_index, batch=batch))
        assert same == (kind != "agreement")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_symmetrize_adds_the_missing_directions(kind: str, weighted: bool) -> None:
    torch.manual_seed(3)
    edge_index = torch.randint(0, N, (2, 80)).unique(dim=1)  # some edges in both directions
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    weight = torch.rand(edge_index.shape[1]) + 0.5 if weighted else None
    layer = make_layer(kind)
    directed = make_layer(kind, symmetrize=True)
    x = torch.randn(N, CHANNELS)
    with pytest.raises(UserError, match="symmetrize=True"):
        layer(x, edge_index, weight)
    if weighted:
        both, mean = to_undirected(edge_index, weight, reduce="mean")
    else:
        both, mean = to_undirected(edge_index), None
    torch.testing.assert_close(directed(x, edge_index, weight), layer(x, both, mean))
    # A graph that is undirected already stays as it is.
    torch.testing.assert_close(directed(x, both, mean), layer(x, both, mean))


@pytest.mark.parametrize("symmetrize", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "agreement"])
def test_first_and_second_derivatives(kind: str, self_loops: bool, symmetrize: bool) -> None:
    edge_index = random_graph(8, 0.6, 0)
    if symmetrize:
        edge_index = edge_index[:, 1:]  # one edge in one direction
    weight = symmetric_weight(edge_index).requires_grad_()
    layer = make_layer(kind, "bernstein", 2, self_loops=self_loops, symmetrize=symmetrize).double()
    x = torch.randn(8, 2, dtype=torch.float64, requires_grad=True)

    def call(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return layer(x, edge_index, weight)

    detached = layer(x, edge_index, weight.detach())
    torch.testing.assert_close(call(x, weight), detached, rtol=1e-10, atol=1e-12)
    # A step of 10⁻⁷ in one direction of an edge is within the tolerance for equal weights.
    assert torch.autograd.gradcheck(call, (x, weight), eps=1e-7, atol=1e-5, rtol=1e-3)
    # The gradients for both directions are equal, so the second derivative is taken of x alone.
    assert torch.autograd.gradgradcheck(lambda x: call(x, weight.detach()), (x,))
    gradient = torch.autograd.grad(call(x, weight).square().sum(), weight, create_graph=True)[0]
    assert torch.autograd.grad(gradient.square().sum(), x)[0].isfinite().all()


def test_the_gradient_of_a_weight_is_that_of_a_dense_filter() -> None:
    edge_index = random_graph(10, 0.5, 0)
    weight = symmetric_weight(edge_index).requires_grad_()
    x = torch.randn(10, 2, dtype=torch.float64)
    layer = PolyConv(K=3, basis="monomial").double()
    (gradient,) = torch.autograd.grad(layer(x, edge_index, weight).square().sum(), weight)

    dense = torch.zeros(10, 10, dtype=torch.float64)
    other = weight.detach().clone().requires_grad_()
    A = dense.index_put((edge_index[0], edge_index[1]), other)
    A = (A + A.T) / 2
    scale = A.sum(1).clamp(min=1e-12).rsqrt() * (A.sum(1) > 0)
    A = scale[:, None] * A * scale
    out = sum(layer.gamma[k] * torch.linalg.matrix_power(A, k) @ x for k in range(4))
    (expected,) = torch.autograd.grad(out.square().sum(), other)
    torch.testing.assert_close(gradient, expected)


def test_agreement_passes_gradients_through_the_terms_only() -> None:
    edge_index = random_graph(10, 0.5, 0)
    weight = symmetric_weight(edge_index).requires_grad_()
    x = torch.randn(10, CHANNELS, dtype=torch.float64)
    layer = make_layer("agreement").double()
    out, psi = layer(x, edge_index, weight, return_coefficients=True)
    assert not torch.autograd.grad(psi.sum(), weight, allow_unused=True, retain_graph=True)[0]
    (gradient,) = torch.autograd.grad(out.square().sum(), weight)
    assert gradient.abs().max() > 0


def refused_calls() -> dict[str, tuple]:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    ones = torch.ones(edge_index.shape[1])
    return {
        "x has 16 columns, but the layer expects 4": (torch.randn(N, 16), edge_index),
        "bipartite": ((x, x[:5]), edge_index),
        r"shape \[num_nodes, channels\]": (torch.randn(2, N, CHANNELS), edge_index),
        "floating-point features, got torch.int64": (torch.ones(N, 4).long(), edge_index),
        "x is torch.float64, but the parameters of NFConv": (x.double(), edge_index),
        "x is torch.bfloat16": (x.bfloat16(), edge_index),
        "dense node features": (x.to_sparse(), edge_index),
        "its values range from": (x[:20], edge_index),
        r"shape \[2, num_edges\], got \[40": (x, torch.zeros(40, 2).long()),
        "must have an integer type, got torch.float32": (x, edge_index.float()),
        "is a sparse matrix": (x, torch.eye(N).to_sparse()),
        "edge_index is of the type ndarray": (x, edge_index.numpy()),
        "edge_weight is of the type list": (x, edge_index, ones.tolist()),
        "one number per edge": (x, edge_index, ones[:-1]),
        "must not be negative": (x, edge_index, -ones),
        "both directions": (x, edge_index[:, 1:]),
        r"batch has the shape \[3\]": (x, edge_index, None, torch.zeros(3).long()),
        "it is torch.float32: convert it with": (x, edge_index, None, torch.zeros(N)),
        "return_coefficients is passed by keyword": (x, edge_index, None, True),
    }


@pytest.mark.parametrize("message", refused_calls())
def test_wrong_inputs_are_refused(message: str) -> None:
    with pytest.raises(UserError, match=message):
        NFConv(CHANNELS, K=3)(*refused_calls()[message])


@pytest.mark.parametrize("number", [-1, N])
def test_gates_that_pool_a_graph_refuse_wrong_numbers_of_graphs(number: int) -> None:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    batch = torch.full((N,), number)
    with pytest.raises(UserError, match=f"batch contains the graph number {number}"):
        NFConv(CHANNELS, K=3, rank=3, gate="agreement")(x, edge_index, batch=batch)
    NFConv(CHANNELS, K=3, gate="term")(x, edge_index, batch=batch)


def test_an_estimated_eigenvalue_is_refused_where_it_would_mislead() -> None:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    conv = NFConv(CHANNELS, lambda_max="estimate")
    with pytest.raises(UserError, match="one number for all graphs"):
        conv(x, edge_index, batch=torch.zeros(N).long())
    with pytest.raises(UserError, match="requires a gradient"):
        conv(x, edge_index, torch.ones(edge_index.shape[1], requires_grad=True))


def test_the_degree_is_passed_by_name() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        NFConv(16, 32)
    with pytest.raises(TypeError, match="positional argument"):
        PolyConv(8)
