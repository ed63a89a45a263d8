"""The registered operators, and compiled layers against eager ones."""

import gc

import pytest
import torch
from conftest import random_graph
from helpers.layers import KINDS, make_layer, output_and_gradients
from torch import nn
from torch._inductor import config as inductor_config

from nfgnn.spectral import BASES, scaled_laplacian, traced

N, CHANNELS = 30, 4
TABLE = [1.0, 0.0, 0.0, 2.0, 0.1, -1.0]


@pytest.fixture(autouse=True)
def _fresh_compiler() -> None:
    torch._dynamo.reset()
    torch.manual_seed(1)


def symmetric_weight(edge_index: torch.Tensor) -> torch.Tensor:
    return 0.5 + (edge_index.sum(0) % 5) / 5


class Layers(nn.Module):
    """Layers of one kind in all bases, one after the other, so that they are compiled at once."""

    def __init__(self, kind: str, **settings) -> None:
        super().__init__()
        self.layers = nn.ModuleList(make_layer(kind, basis, **settings) for basis in BASES)

    def forward(self, x, edge_index, edge_weight=None, batch=None):
        outputs = [layer(x, edge_index, edge_weight, batch) for layer in self.layers]
        return torch.cat(outputs, 1)


def assert_equal(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for name, value in found.items():
        scale = expected[name].abs().max().clamp(min=1)
        difference = float((value - expected[name]).abs().max() / scale)
        assert difference < 1e-5, (name, difference)


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_equals_eager(kind: str) -> None:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    model = Layers(kind, self_loops=True, lambda_max=1.9)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    expected = output_and_gradients(model, lambda x: model(x, edge_index), x)
    assert_equal(output_and_gradients(model, lambda x: compiled(x, edge_index), x), expected)


def test_compiled_by_inductor_equals_eager(monkeypatch) -> None:
    # Worker processes take longer to start than this graph takes to compile.
    monkeypatch.setattr(inductor_config, "compile_threads", 1)
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    model = make_layer("term", "bernstein")
    compiled = torch.compile(model, fullgraph=True)
    expected = output_and_gradients(model, lambda x: model(x, edge_index), x)
    assert_equal(output_and_gradients(model, lambda x: compiled(x, edge_index), x), expected)


@pytest.mark.parametrize("kind", ["published", "agreement", "global"])
def test_compiled_with_weights_batch_and_one_way_edges(kind: str) -> None:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    edge_index = edge_index[:, edge_index[0] < edge_index[1]]
    weight = symmetric_weight(edge_index)
    batch = (torch.arange(N) >= N // 2).long()
    model = make_layer(kind, symmetrize=True)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")

    def call(layer, x, weight):
        return layer(x, edge_index, weight, batch)

    expected = output_and_gradients(model, lambda **a: call(model, **a), x, weight=weight)
    found = output_and_gradients(model, lambda **a: call(compiled, **a), x, weight=weight)
    assert_equal(found, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.parametrize("kind", ["term", "agreement"])
def test_compiled_in_other_precisions(kind: str, dtype: torch.dtype) -> None:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS, dtype=dtype)
    model = make_layer(kind, "bernstein").to(dtype)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    expected = model(x, edge_index)
    found = compiled(x, edge_index)
    assert found.dtype == dtype
    tolerance = 0.03 if dtype == torch.bfloat16 else 1e-10
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_compiled_under_autocast() -> None:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    model = nn.ModuleList([nn.Linear(CHANNELS, CHANNELS), make_layer("term", "bernstein")])

    def call(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model[1](model[0](x), edge_index)

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    expected = output_and_gradients(model, call, x)
    found = output_and_gradients(model, compiled, x)
    assert found["out"].dtype == torch.float32
    for name, value in found.items():
        torch.testing.assert_close(value, expected[name], rtol=0.03, atol=0.03, msg=name)


@pytest.mark.parametrize("view", [False, True])
def test_a_graph_is_prepared_once_for_all_passes(monkeypatch, view: bool) -> None:
    edges = random_graph(N, 0.2, 0)
    # Compiled code passes a copy of the Python object of a view to its backward pass.
    edge_index = torch.cat([edges, edges], 1).narrow(1, 0, edges.shape[1]) if view else edges
    built = []

    def count(*arguments):
        built.append(1)
        return scaled_laplacian(*arguments)

    monkeypatch.setattr(traced, "scaled_laplacian", count)
    model = make_layer("agreement")
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for _ in range(3):
        compiled(torch.randn(N, CHANNELS), edge_index).sum().backward()
    assert len(built) == 1
    entries = len(traced._OPERATORS)
    del edges, edge_index
    gc.collect()
    assert len(traced._OPERATORS) == entries - 1


def test_a_changed_graph_is_prepared_again() -> None:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    weight = torch.ones(edge_index.shape[1])
    model = make_layer("input")
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    compiled(x, edge_index, weight)
    weight.copy_(symmetric_weight(edge_index))
    torch.testing.assert_close(compiled(x, edge_index, weight), model(x, edge_index, weight))
    # Another number of nodes and edges, which the compiler makes a dynamic size.
    for n in (20, 25):
        other, y = random_graph(n, 0.4, 1), torch.randn(n, CHANNELS)
        torch.testing.assert_close(compiled(y, other), model(y, other))


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # which the compiler reads
def test_a_prepared_operator_breaks_the_graph() -> None:
    operator = scaled_laplacian(random_graph(N, 0.2, 0), num_nodes=N)
    model = make_layer("agreement", "bernstein")
    x = torch.randn(N, CHANNELS)
    compiled = torch.compile(model, backend="aot_eager")
    torch.testing.assert_close(compiled(x, operator), model(x, operator))
    torch._dynamo.reset()
    whole = torch.compile(model, backend="aot_eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        whole(x, operator)


def test_the_second_derivative_of_compiled_code_is_refused_by_torch() -> None:
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS, requires_grad=True)
    compiled = torch.compile(make_layer("term"), fullgraph=True, backend="aot_eager")
    out = compiled(x, edge_index).square().sum()
    (gradient,) = torch.autograd.grad(out, x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        gradient.sum().backward()


@pytest.mark.parametrize("weighted", [False, True])
def test_operators_are_registered_correctly(weighted: bool) -> None:
    edge_index = random_graph(N, 0.2, 0)
    weight = symmetric_weight(edge_index).double().requires_grad_() if weighted else None
    x = torch.randn(N, CHANNELS, dtype=torch.float64, requires_grad=True)
    graph = (edge_index, weight, True, False, 1.9)
    torch.library.opcheck(torch.ops.nfgnn.terms.default, (x, *graph, TABLE, True))
    torch.library.opcheck(torch.ops.nfgnn.degree.default, (N, edge_index, None, True, False, None))
    mixing = torch.randn(9).tolist()
    terms = torch.randn(3, N, CHANNELS, requires_grad=True)
    torch.library.opcheck(torch.ops.nfgnn.mix.default, (terms, mixing, False))
