import math

import pytest
import scipy.special
import torch

from nfgnn.spectral import BASES, RESPONSES, Bernstein, Jacobi, initial_response, resolve_basis

GRID = torch.linspace(-1, 1, 41, dtype=torch.float64)
NAMES = [*BASES, "jacobi(0.5, -0.25)"]


def closed_form(name: str, k: int, K: int) -> torch.Tensor:
    """p_k on the grid from textbook formulas or SciPy, never from a recurrence of ours."""
    t = GRID.numpy()
    u = (1 + t) / 2
    formulas = {
        "chebyshev": lambda: scipy.special.eval_chebyt(k, t),
        "monomial": lambda: (-t) ** k,
        "legendre": lambda: scipy.special.eval_legendre(k, t),
        "jacobi": lambda: scipy.special.eval_jacobi(k, 1.0, 1.0, t),
        "jacobi(0.5, -0.25)": lambda: scipy.special.eval_jacobi(k, 0.5, -0.25, t),
        "bernstein": lambda: math.comb(K, k) * u**k * (1 - u) ** (K - k),
    }
    if name not in formulas:
        pytest.fail(f"add a formula of the basis '{name}' to closed_form, as oracle of its table")
    return torch.as_tensor(formulas[name]())


@pytest.mark.parametrize("K", [0, 1, 2, 10, 20])
@pytest.mark.parametrize("name", NAMES)
def test_evaluate_equals_the_closed_form(name: str, K: int) -> None:
    values = resolve_basis(name).evaluate(GRID, K)
    expected = torch.stack([closed_form(name, k, K) for k in range(K + 1)], dim=-1)
    torch.testing.assert_close(values, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("K", [2, 10, 20])
@pytest.mark.parametrize("response", ["ppr", *(name for name in RESPONSES if name != "random")])
@pytest.mark.parametrize("name", NAMES)
def test_a_projected_response_is_the_same_filter_in_every_basis(
    name: str, response: str, K: int
) -> None:
    g = initial_response(response, alpha=0.3, K=K)
    basis = resolve_basis(name)
    torch.testing.assert_close(
        basis.evaluate(GRID, K) @ basis.project(g, K), g(GRID), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("K", [40, 45, 60, 100])
@pytest.mark.parametrize("response", ["ppr", *(name for name in RESPONSES if name != "random")])
@pytest.mark.parametrize("name", NAMES)
def test_a_high_degree_starts_from_small_coefficients(name: str, response: str, K: int) -> None:
    g = initial_response(response, alpha=0.3, K=K)
    basis = resolve_basis(name)
    coefficients = basis.project(g, K)
    # All responses lie between 0 and 1, so these coefficients need not exceed 1 either.
    assert coefficients.abs().max() < 1.001
    torch.testing.assert_close(basis.evaluate(GRID, K) @ coefficients, g(GRID), rtol=0, atol=1e-9)


def test_a_random_response_is_the_same_filter_in_every_basis_for_the_same_seed() -> None:
    filters = []
    for name in NAMES:
        torch.manual_seed(3)
        basis = resolve_basis(name)
        filters.append(
            basis.evaluate(GRID, 8) @ basis.project(initial_response("random", 0.0, 8), 8)
        )
    for other in filters[1:]:
        torch.testing.assert_close(other, filters[0])


def test_projection_of_a_response_that_is_no_polynomial_converges() -> None:
    def heat(t: torch.Tensor) -> torch.Tensor:
        return torch.exp(-2 * (1 + t))

    errors = []
    for K in (2, 6, 12):
        basis = resolve_basis("legendre")
        errors.append(
            float((basis.evaluate(GRID, K) @ basis.project(heat, K) - heat(GRID)).abs().max())
        )
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-7


def test_low_pass_means_low_frequencies_whatever_the_basis() -> None:
    low, high = torch.tensor([-1.0]).double(), torch.tensor([1.0]).double()
    for name in NAMES:
        basis = resolve_basis(name)
        for response, at_low, at_high in (
            ("low-pass", 1.0, 0.0),
            ("high-pass", 0.0, 1.0),
            ("ppr", 1.0, None),
        ):
            c = basis.project(initial_response(response, 0.1, 10), 10)
            assert float(basis.evaluate(low, 10) @ c) == pytest.approx(at_low, abs=1e-9)
            if at_high is not None:
                assert float(basis.evaluate(high, 10) @ c) == pytest.approx(at_high, abs=1e-9)


@pytest.mark.parametrize(("K", "bound"), [(10, 2e-7), (20, 4e-7)])
def test_bernstein_by_change_of_basis_is_well_conditioned_in_float32(K: int, bound: float) -> None:
    exact = torch.stack([closed_form("bernstein", k, K) for k in range(K + 1)], dim=-1)
    error = (Bernstein().evaluate(GRID.float(), K).double() - exact).abs().max()
    assert float(error) < bound
    assert float(Bernstein().mixing(K).abs().max()) <= 1


def test_names_resolve_and_print_as_what_resolves_again() -> None:
    for name in NAMES:
        basis = resolve_basis(name)
        again = resolve_basis(str(basis))
        torch.testing.assert_close(basis.evaluate(GRID, 5), again.evaluate(GRID, 5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resolve_basis("fourier"), "unknown basis 'fourier': choose one of chebyshev"),
        (lambda: resolve_basis("chebyshev(2)"), "does not take the parameters"),
        (lambda: resolve_basis("jacobi(x)"), "are not numbers"),
        (lambda: Jacobi(-1, 0), "needs finite a > -1"),
        (lambda: initial_response("bandpass", 0.1, 4), "unknown initial response 'bandpass'"),
        (lambda: initial_response("ppr", 1.5, 4), "alpha must lie between 0 and 1"),
    ],
)
def test_wrong_names_are_refused(call, message) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        call()
