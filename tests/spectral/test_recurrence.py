"""The engine against the exact eigenbasis, on graphs with isolated nodes and several components."""

import pytest
import torch
from conftest import random_graph
from helpers.dense import function_of
from helpers.dense import scaled_laplacian as dense_laplacian

from nfgnn.spectral import (
    BASES,
    Basis,
    each_term,
    paired_terms,
    polynomial_terms,
    recurrence_terms,
    resolve_basis,
    scaled_laplacian,
)

N = 40


def exact_terms(
    edge_index: torch.Tensor, x: torch.Tensor, name: str, K: int, lambda_max: float
) -> torch.Tensor:
    L = dense_laplacian(edge_index, N, lambda_max)
    t, U = torch.linalg.eigh(L)
    p = resolve_basis(name).evaluate(t, K)
    return torch.stack([function_of(L, p[:, k], U) @ x for k in range(K + 1)])


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("lambda_max", [2.0, 1.9])
@pytest.mark.parametrize(
    ("name", "K"), [*((name, 10) for name in BASES), ("bernstein", 20), ("chebyshev", 0)]
)
def test_terms_equal_the_exact_eigenbasis(name: str, K: int, lambda_max: float, seed: int) -> None:
    edge_index = random_graph(N, 0.15, seed)
    x = torch.randn(N, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    operator = scaled_laplacian(edge_index, num_nodes=N, lambda_max=lambda_max)
    terms = polynomial_terms(x, operator, resolve_basis(name), K)
    exact = exact_terms(edge_index, x, name, K, lambda_max)
    scale = (
        exact.abs().max().clamp(min=1)
    )  # beyond λ_max the polynomials grow: the error is relative there
    torch.testing.assert_close(terms / scale, exact / scale, rtol=0, atol=1e-10)


class SecondKind(Basis):
    """Chebyshev polynomials of the second kind as textbooks write them, with c_0 = -1."""

    def table(self, K: int) -> torch.Tensor:
        return torch.tensor([[2.0, 0.0, -1.0]], dtype=torch.float64).repeat(K, 1)


@pytest.mark.parametrize("lambda_max", [2.0, 1.9])
@pytest.mark.parametrize("K", [1, 6])
def test_the_term_before_the_first_is_zero(K: int, lambda_max: float) -> None:
    """The buffers of a recurrence start with any content, which c_0 must not bring in."""
    edge_index = random_graph(N, 0.15, 0)
    x = torch.randn(N, 3, dtype=torch.float64)
    L = dense_laplacian(edge_index, N, lambda_max)
    exact = [x, 2 * L @ x]
    for _ in range(K - 1):
        exact.append(2 * L @ exact[-1] - exact[-2])
    operator = scaled_laplacian(edge_index, num_nodes=N, lambda_max=lambda_max)
    # An allocator that reuses memory hands out these NaNs as the buffers of the terms.
    garbage = [torch.full((K + 1, N, 3), torch.nan, dtype=torch.float64) for _ in range(8)]
    del garbage
    terms = polynomial_terms(x, operator, SecondKind(), K)
    torch.testing.assert_close(terms, torch.stack(exact))
    one_by_one = [term.clone() for term in each_term(x.clone(), operator, SecondKind(), K)]
    torch.testing.assert_close(torch.stack(one_by_one), torch.stack(exact))


@pytest.mark.parametrize(("K", "bound"), [(10, 1e-6), (20, 2e-6)])
def test_the_float32_error_of_bernstein_terms_is_small(K: int, bound: float) -> None:
    """The figure that docs/bases.md states."""
    worst = 0.0
    for seed in range(5):
        edge_index = random_graph(N, 0.15, seed)
        x = torch.randn(N, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        exact = exact_terms(edge_index, x, "bernstein", K, 2.0)
        operator = scaled_laplacian(edge_index, num_nodes=N)
        terms = polynomial_terms(x.float(), operator, resolve_basis("bernstein"), K)
        assert terms.dtype == torch.float32
        worst = max(worst, float((terms.double() - exact).abs().max() / x.abs().max()))
    assert worst < bound


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("K", [0, 1, 2, 5])
def test_the_adjoint_is_the_gradient(name: str, K: int) -> None:
    edge_index = random_graph(12, 0.4, 0)
    operator = scaled_laplacian(edge_index, num_nodes=12, lambda_max=1.8)
    x = torch.randn(12, 2, dtype=torch.float64, requires_grad=True)

    def terms(x: torch.Tensor) -> torch.Tensor:
        return polynomial_terms(x, operator, resolve_basis(name), K)

    assert torch.autograd.gradcheck(terms, (x,))
    assert torch.autograd.gradgradcheck(terms, (x,))


@pytest.mark.parametrize("name", BASES)
def test_a_batch_folded_into_columns_equals_one_by_one(name: str) -> None:
    operator = scaled_laplacian(random_graph(15, 0.3, 0), num_nodes=15)
    batch = torch.randn(15, 4, 3, dtype=torch.float64)

    def loss(x: torch.Tensor) -> torch.Tensor:
        return (polynomial_terms(x, operator, resolve_basis(name), 6) ** 3).sum()

    value, gradient = torch.func.grad_and_value(loss)(batch[:, 0])
    values, gradients = torch.vmap(torch.func.grad_and_value(loss), in_dims=1, out_dims=(0, 0))(
        batch
    )
    for i in range(4):
        value, gradient = torch.func.grad_and_value(loss)(batch[:, i])
        torch.testing.assert_close((values[i], gradients[i]), (value, gradient))


@pytest.mark.parametrize("name", BASES)
def test_K_products_forward_and_K_backward(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from nfgnn.spectral import torch_backend

    calls = []
    step = torch_backend.step
    monkeypatch.setattr(torch_backend, "step", lambda *a, **k: calls.append(1) or step(*a, **k))
    x = torch.randn(15, 3, requires_grad=True)
    terms = polynomial_terms(
        x, scaled_laplacian(random_graph(15, 0.3, 0), num_nodes=15), resolve_basis(name), 7
    )
    assert len(calls) == 7
    terms.sum().backward()
    assert len(calls) == 14


def test_a_graph_without_edges_is_no_special_case() -> None:
    operator = scaled_laplacian(torch.empty(2, 0, dtype=torch.long), num_nodes=3)
    terms = polynomial_terms(torch.ones(3, 2), operator, resolve_basis("chebyshev"), 2)
    torch.testing.assert_close(terms[:, 0, 0], torch.tensor([1.0, 0.0, -1.0]))  # T_k(0)


def test_rows_must_match_the_graph() -> None:
    operator = scaled_laplacian(random_graph(15, 0.3, 0), num_nodes=15)
    with pytest.raises(ValueError, match="x has 14 rows, the graph has 15 nodes"):
        polynomial_terms(torch.ones(14, 2), operator, resolve_basis("chebyshev"), 2)


@pytest.mark.parametrize("name", BASES)
def test_two_signals_share_a_recurrence_and_one_has_a_gradient(name: str) -> None:
    operator = scaled_laplacian(random_graph(N, 0.15, 0), num_nodes=N)
    basis, x = resolve_basis(name), torch.randn(4, N, 3, dtype=torch.float64, requires_grad=True)
    held = torch.randn(4, N, 2, dtype=torch.float64)
    terms, held_terms = torch.vmap(lambda a, b: paired_terms(a, b, operator, basis, 6))(x, held)
    single = torch.stack([recurrence_terms(a, operator, basis, 6) for a in x])
    torch.testing.assert_close(terms, single)
    torch.testing.assert_close(
        held_terms, torch.stack([recurrence_terms(b, operator, basis, 6) for b in held])
    )
    assert not held_terms.requires_grad
    weights = torch.randn_like(terms)
    (ours,) = torch.autograd.grad(terms, x, weights)
    (expected,) = torch.autograd.grad(single, x, weights)
    torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("name", BASES)
def test_terms_one_by_one_are_the_same_bits_and_ignore_what_was_in_the_buffers(name: str) -> None:
    from nfgnn.spectral import torch_backend

    x, operator = torch.randn(40, 5), scaled_laplacian(random_graph(40, 0.2, 1), num_nodes=40)
    expected = recurrence_terms(x, operator, resolve_basis(name), 6)
    for k, term in enumerate(each_term(x.clone(), operator, resolve_basis(name), 6)):
        assert torch.equal(term, expected[k])
    matrix, garbage = operator.adjacency(torch.float32).tensor, torch.full_like(x, torch.nan)
    assert torch.equal(
        torch_backend.step(matrix, x, 1.0, 0.0, garbage, 0.0, out=garbage), torch.mm(matrix, x)
    )
