"""Features that are propagated once, against counted computations."""

import pytest
import torch
from conftest import random_graph
from torch import Tensor

from nfgnn.nn.propagated_features import computed_once
from nfgnn.spectral import ScaledLaplacian, scaled_laplacian

N = 20


class Counted:
    """The means over neighbours, and how often they were computed."""

    def __init__(self, operator: ScaledLaplacian) -> None:
        self.operator = operator
        self.count = 0

    def __call__(self, x: Tensor, options: int = 0) -> Tensor:
        def make() -> Tensor:
            self.count += 1
            return self.operator.adjacency(x.dtype) @ x

        return computed_once(x, (self.operator,), options, make)


@pytest.fixture
def propagate() -> Counted:
    return Counted(scaled_laplacian(random_graph(N, 0.3, 0), num_nodes=N))


def test_is_computed_again_for_other_features_graphs_and_options(propagate: Counted) -> None:
    x = torch.randn(N, 3)
    assert propagate(x) is propagate(x)
    assert propagate.count == 1
    propagate(x, options=1)
    assert propagate.count == 2
    x[0] += 1
    torch.testing.assert_close(propagate(x), propagate.operator.adjacency(x.dtype) @ x)
    assert propagate.count == 3
    other = Counted(scaled_laplacian(random_graph(N, 0.3, 1), num_nodes=N))
    torch.testing.assert_close(other(x), other.operator.adjacency(x.dtype) @ x)
    assert other.count == 1


def test_features_with_a_gradient_get_it(propagate: Counted) -> None:
    x = torch.randn(N, 3, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        propagate(x)
    assert torch.autograd.gradcheck(propagate, (x,))
    assert propagate.count > 2


def test_what_an_evaluation_computes_can_be_trained_on(propagate: Counted) -> None:
    x = torch.randn(N, 3)
    with torch.inference_mode():
        propagate(x)
    weight = torch.randn(3, 2, requires_grad=True)
    (propagate(x) @ weight).sum().backward()
    assert propagate.count == 1
    torch.testing.assert_close(weight.grad, propagate(x).sum(0)[:, None].expand(3, 2))
