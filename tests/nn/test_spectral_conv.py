"""SpectralConv against dense polynomials, PyG's SAGEConv and its own compiled form."""

import re

import pytest
import torch
from conftest import random_graph
from torch import Tensor
from torch_geometric.nn import SAGEConv

from nfgnn.errors import UserError
from nfgnn.nn import HEAD_GATES, SpectralConv
from nfgnn.spectral import BASES, resolve_basis

N = 30
GATES = ("none", *HEAD_GATES)


def dense_operator(edge_index: Tensor, weight: Tensor | None, mean: bool) -> Tensor:
    """Return L̃ = -Â, or -D⁻¹ A, as a dense matrix."""
    values = torch.ones(edge_index.shape[1]) if weight is None else weight
    adjacency = torch.zeros(N, N, dtype=torch.double)
    adjacency.index_put_((edge_index[0], edge_index[1]), values.double(), accumulate=True)
    degree = adjacency.sum(1)
    inverse = torch.where(degree > 0, 1 / degree, 0.0)
    if mean:
        return -inverse[:, None] * adjacency
    return -inverse.sqrt()[:, None] * adjacency * inverse.sqrt()


def dense_terms(x: Tensor, matrix: Tensor, basis: str, K: int) -> list[Tensor]:
    """Return p_k(M) x from the recurrence of the basis on dense matrices."""
    form = resolve_basis(basis)
    terms = [x]
    for k, (a, b, c) in enumerate(form.table(K).tolist()):
        term = a * matrix @ terms[-1] + b * terms[-1]
        if k:
            term = term + c * terms[-2]
        terms.append(term)
    mixing = form.mixing(K)
    if mixing is None:
        return terms
    return list(torch.einsum("kj,jnc->knc", mixing.double(), torch.stack(terms)))


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("operator", ["symmetric", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_a_gate_it_is_a_sum_of_dense_polynomials(
    basis: str, operator: str, weighted: bool
) -> None:
    torch.manual_seed(0)
    edge_index = random_graph(N - 1, 0.2, 0)  # the last node has no neighbours
    weight = (edge_index.sum(0) % 3 + 1).double() if weighted else None
    conv = SpectralConv(4, 3, K=3, basis=basis, operator=operator).double()
    torch.nn.init.normal_(conv.bias)
    x = torch.randn(N, 4, dtype=torch.double)
    terms = dense_terms(x, dense_operator(edge_index, weight, operator == "mean"), basis, 3)
    expected = sum(term @ own for term, own in zip(terms, conv.weight)) + conv.bias
    torch.testing.assert_close(conv(x, edge_index, weight), expected)
    if weight is not None:
        # With a gradient for the weights, the engine takes the place of products with a matrix.
        weight = weight.requires_grad_()
        torch.testing.assert_close(conv(x, edge_index, weight), expected)
        mirrored = {(i, j): p for p, (i, j) in enumerate(edge_index.T.tolist())}
        other = torch.tensor([mirrored[j, i] for i, j in edge_index.T.tolist()])

        def with_weights(own: Tensor) -> Tensor:
            return conv(x, edge_index, own + own[other])  # both directions have one weight

        assert torch.autograd.gradcheck(with_weights, weight / 2)


def test_degree_one_with_means_is_graphsage() -> None:
    torch.manual_seed(0)
    edge_index = random_graph(N, 0.2, 0)
    conv = SpectralConv(5, 4, operator="mean")
    sage = SAGEConv(5, 4)
    with torch.no_grad():
        sage.lin_r.weight.copy_(conv.weight[0].T)
        sage.lin_l.weight.copy_(conv.weight[1].T)
        sage.lin_l.bias.copy_(conv.bias)
    x = torch.randn(N, 5)
    torch.testing.assert_close(conv(x, edge_index), sage(x, edge_index), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("gate", HEAD_GATES)
def test_a_gate_starts_at_the_global_filter_and_weighs_nodes_and_heads(gate: str) -> None:
    torch.manual_seed(0)
    edge_index = random_graph(N, 0.2, 0)
    conv = SpectralConv(8, 3, K=2, gate=gate, heads=4).double()
    x = torch.randn(N, 8, dtype=torch.double)
    matrix = dense_operator(edge_index, None, False)
    terms = dense_terms(x, matrix, "monomial", 2)
    start = sum(term @ own for term, own in zip(terms, conv.weight))
    torch.testing.assert_close(conv(x, edge_index), start)
    for parameter in conv.gate.parameters():
        torch.nn.init.normal_(parameter)
    out, means = conv(x, edge_index, return_coefficients=True)
    operator = conv.operator(x, edge_index, None)
    coefficients = conv.gate(conv.order_terms(x, operator), operator)
    assert coefficients.std(0).min() > 1e-4  # they differ between nodes
    expected = torch.zeros(N, 3, dtype=torch.double)
    for k, term in enumerate(terms):
        weighted = term * coefficients[:, k].repeat_interleave(2, dim=1)
        expected += weighted @ conv.weight[k]
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(means, coefficients.mean(-1))


def test_term_gate_is_algorithm_1_per_head() -> None:
    torch.manual_seed(0)
    edge_index = random_graph(N, 0.2, 0)
    conv = SpectralConv(6, 3, K=1, gate="term", heads=2).double()
    for parameter in conv.gate.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(N, 6, dtype=torch.double)
    terms = dense_terms(x, dense_operator(edge_index, None, False), "monomial", 1)
    operator = conv.operator(x, edge_index, None)
    found = conv.gate(conv.order_terms(x, operator), operator)
    for k, term in enumerate(terms):
        expected = 2 * torch.sigmoid(term @ conv.gate.weight) * conv.gate.gamma[k]
        torch.testing.assert_close(found[:, k], expected)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("operator", ["symmetric", "mean"])
def test_compiled_layer_equals_the_layer(gate: str, operator: str) -> None:
    torch.manual_seed(0)
    edge_index = random_graph(N, 0.2, 0)
    conv = SpectralConv(8, 8, K=2, gate=gate, heads=2, operator=operator, basis="chebyshev")
    x = torch.randn(N, 8, requires_grad=True)
    torch.compiler.reset()  # the variants of all parameters exceed the limit of one function
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    (expected,) = torch.autograd.grad(conv(x, edge_index).square().sum(), x)
    (found,) = torch.autograd.grad(compiled(x, edge_index).square().sum(), x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("gate", GATES)
def test_half_precision_is_close_to_float32(gate: str) -> None:
    torch.manual_seed(0)
    edge_index = random_graph(N, 0.2, 0)
    conv = SpectralConv(8, 8, K=2, gate=gate, heads=2)
    x = torch.randn(N, 8)
    half = conv.to(torch.bfloat16)(x.bfloat16(), edge_index)
    assert half.dtype == torch.bfloat16
    exact = conv.float()(x.bfloat16().float(), edge_index)
    torch.testing.assert_close(half.float(), exact, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("gate", GATES)
def test_degree_zero_is_a_linear_layer(gate: str) -> None:
    torch.manual_seed(0)
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, 8, dtype=torch.double)
    conv = SpectralConv(8, 4, K=0, gate=gate, heads=2).double()
    out, psi = conv(x, edge_index, return_coefficients=True)
    # All gates start at one.
    torch.testing.assert_close(out, x @ conv.weight[0])
    torch.testing.assert_close(psi, torch.ones(N, 1, dtype=torch.double))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("gate", GATES)
def test_autocast_multiplies_by_the_weights_in_half_precision(gate: str, compiled: bool) -> None:
    torch.manual_seed(0)
    edge_index = random_graph(N, 0.2, 0)
    conv = SpectralConv(8, 8, K=2, gate=gate, heads=2)
    torch.nn.init.normal_(conv.bias)
    x = torch.randn(N, 8, requires_grad=True)

    def call(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return conv(x, edge_index)

    torch.compiler.reset()
    run = torch.compile(call, fullgraph=True, backend="aot_eager") if compiled else call
    out = run(x)
    assert out.dtype == torch.bfloat16
    exact = conv(x, edge_index)
    torch.testing.assert_close(out.float(), exact, rtol=0.05, atol=0.05)
    (found,) = torch.autograd.grad(out.float().square().sum(), x)
    (expected,) = torch.autograd.grad(exact.square().sum(), x)
    assert found.dtype == torch.float32
    assert (found - expected).norm() < 0.02 * expected.norm()
    if gate == "none":
        # The terms are those of float32: only the products differ from it.
        terms = conv.order_terms(x, conv.operator(x, edge_index, None))
        products = [term.bfloat16() @ own.bfloat16() for term, own in zip(terms, conv.weight)]
        total = (products[0] + products[1] + products[2]) + conv.bias.bfloat16()
        torch.testing.assert_close(out, total, rtol=0.02, atol=0.02)
    with torch.autocast("cpu", torch.bfloat16):
        assert conv.double()(x.double(), edge_index).dtype == torch.float64


@pytest.mark.parametrize("gate", GATES)
def test_graphs_of_a_batch_do_not_meet(gate: str) -> None:
    torch.manual_seed(0)
    first, second = random_graph(N, 0.2, 0), random_graph(N, 0.4, 1)
    conv = SpectralConv(8, 4, K=2, gate=gate, heads=2)
    for parameter in conv.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x = torch.randn(2 * N, 8)
    batch = torch.arange(2 * N) // N
    together = conv(x, torch.cat([first, second + N], dim=1), batch=batch)
    alone = torch.cat([conv(x[:N], first), conv(x[N:], second)])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)


def test_wrong_arguments_name_the_choices() -> None:
    with pytest.raises(UserError, match="symmetric"):
        SpectralConv(4, 4, operator="symmetrical")
    with pytest.raises(UserError, match="agreement"):
        SpectralConv(4, 4, gate="agrement")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"in_channels": 0}, "in_channels = 0 is not valid: pass a whole number of at least 1"),
        ({"out_channels": -1}, "out_channels = -1 is not valid"),
        ({"heads": 0}, "heads = 0 is not valid"),
        ({"K": -1}, "K = -1 is not valid: pass a whole number of at least 0"),
        ({"K": 1.5}, "K = 1.5 is not valid"),
        ({"gate": None}, 'gate = None is not a name: pass gate="none" for no gate'),
        ({"operator": None}, "unknown operator None: choose one of symmetric, mean"),
        ({"basis": None}, "unknown basis None: choose one of chebyshev, monomial"),
        ({"lambda_max": -2.0}, 'lambda_max = -2.0 is not valid: pass a positive number or "est'),
        ({"lambda_max": "2"}, "lambda_max = '2' is not valid"),
        ({"lambda_max": None}, "lambda_max = None is not valid"),
        (
            {"gate": "term", "heads": 5},
            "heads = 5 does not divide in_channels = 6: choose a divisor, such as heads = 6",
        ),
    ],
)
def test_wrong_numbers_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        SpectralConv(**{"in_channels": 6, "out_channels": 4, **arguments})


def test_other_channels_than_those_of_the_layer_are_refused() -> None:
    with pytest.raises(UserError, match=r"x has 5 columns, .* use SpectralConv\(5, 4\)"):
        SpectralConv(6, 4)(torch.rand(N, 5), random_graph(N, 0.2, 0))


def test_repr() -> None:
    plain = "SpectralConv(8, 16, K=2, basis=monomial, operator=symmetric)"
    assert repr(SpectralConv(8, 16, K=2)) == plain
    gated = "SpectralConv(8, 8, K=1, basis=monomial, operator=mean, gate=TermHeadGate, heads=4)"
    assert repr(SpectralConv(8, 8, operator="mean", gate="term", heads=4)) == gated
