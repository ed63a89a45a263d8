import pytest
import torch
from conftest import random_graph
from helpers.dense import function_of
from helpers.dense import scaled_laplacian as dense_laplacian

from nfgnn.nn import PolyConv
from nfgnn.spectral import BASES

N = 30


@pytest.mark.parametrize("basis", BASES)
def test_equals_the_filter_on_the_exact_eigenbasis(basis: str) -> None:
    edge_index, x = random_graph(N, 0.2, 3), torch.randn(N, 4, dtype=torch.float64)
    conv = PolyConv(K=8, basis=basis).double()
    torch.nn.init.normal_(conv.gamma)
    L = dense_laplacian(edge_index, N)
    t, U = torch.linalg.eigh(L)
    response = conv.basis.evaluate(t, 8) @ conv.gamma.detach()
    torch.testing.assert_close(conv(x, edge_index), function_of(L, response, U) @ x)


def test_the_middle_of_bernstein_is_a_band_pass() -> None:
    """Coefficients of the Bernstein basis are values at frequencies: the first is the lowest."""
    conv = PolyConv(K=10, basis="bernstein", init="all-pass")
    torch.testing.assert_close(conv.gamma.detach(), torch.ones(11), rtol=0, atol=1e-5)
    conv = PolyConv(K=10, basis="bernstein", init="low-pass")
    assert torch.all(conv.gamma.detach().diff() < 1e-6)


@pytest.mark.parametrize("basis", BASES)
def test_gradients(basis: str) -> None:
    conv = PolyConv(K=3, basis=basis).double()
    edge_index = random_graph(10, 0.5, 0)
    x = torch.randn(10, 2, dtype=torch.float64, requires_grad=True)

    def call(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(conv, {"gamma": gamma}, (x, edge_index))

    assert torch.autograd.gradcheck(call, (x, conv.gamma))


def test_fixed_coefficients_are_not_trained() -> None:
    assert not PolyConv(learnable=False).gamma.requires_grad
