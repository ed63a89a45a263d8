"""A polynomial with a weight matrix per order, of many runs at once, against dense matrices."""

import pytest
import torch
from conftest import random_graph
from helpers import triton_on_cpu  # noqa: F401  before any kernel is defined
from torch import Tensor
from torch.func import grad_and_value, vmap

from nfgnn.nn.polynomial_linear import polynomial_linear
from nfgnn.spectral import recurrence_table, resolve_basis, scaled_laplacian

N = 14
RUNS = 3


@pytest.mark.parametrize(("basis", "K"), [("monomial", 0), ("monomial", 1), ("jacobi", 3)])
def test_runs_at_once_equal_dense_matrices(basis: str, K: int) -> None:
    """D⁻¹ A is not symmetric, so the gradient shows whether its transpose is used."""
    torch.manual_seed(0)
    operator = scaled_laplacian(random_graph(N, 0.4, 0), None, N, lambda_max=1.9)
    matrix = operator.mean_matrix(torch.float32)
    table = recurrence_table(resolve_basis(basis), K, operator.lambda_max)
    dense = matrix.tensor.to_dense().double()
    x = torch.randn(RUNS, N, 6)
    weight = torch.randn(RUNS, K + 1, 6, 5)
    factor = torch.randn(N, 5)

    def ours(x: Tensor, weight: Tensor) -> Tensor:
        return (polynomial_linear(x, weight, matrix, table) * factor).square().sum()

    def expected(x: Tensor, weight: Tensor) -> Tensor:
        terms = [x]
        for k, (a, b, c) in enumerate(table):
            term = a * dense @ terms[-1] + b * terms[-1]
            terms.append(term + c * terms[-2] if k else term)
        out = sum(term @ own for term, own in zip(terms, weight))
        return (out * factor).square().sum()

    places = (0, 1)
    found = vmap(grad_and_value(ours, argnums=places))(x, weight)
    exact = vmap(grad_and_value(expected, argnums=places))(x.double(), weight.double())
    single = grad_and_value(ours, argnums=places)(x[0], weight[0])
    for run, (gradients, value) in ((slice(None), found), (0, single)):
        for our, oracle in zip((*gradients, value), (*exact[0], exact[1])):
            scale = float(oracle.abs().max())
            torch.testing.assert_close(our.double(), oracle[run], rtol=1e-4, atol=1e-4 * scale)
