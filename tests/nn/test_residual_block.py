"""The operations of a residual block: the GPU's kernels against autograd in float64."""

import pytest
import torch
import torch.nn.functional as F
from helpers import triton_on_cpu  # noqa: F401  before any kernel is defined
from torch import Tensor
from torch.func import grad_and_value, vmap

from nfgnn.kernels.dropout_mask import kept_values
from nfgnn.nn import residual_block
from nfgnn.nn.residual_block import DropoutStream, activate, linear, residual_norm

N = 23
RUNS = 3
RATE = 0.4
SEED = 5


@pytest.fixture(autouse=True)
def _kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residual_block, "is_fused", lambda x: x.dtype == torch.float32)


def stream(training: bool) -> DropoutStream:
    if not training:
        return DropoutStream(0.0, None, None)
    return DropoutStream(RATE, torch.tensor([RATE]), torch.tensor([SEED]))


def mask(number: int, width: int, training: bool) -> Tensor:
    if not training:
        return torch.ones(N, width, dtype=torch.double)
    return kept_values(SEED + number, N, width, RATE).double() / (1 - RATE)


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.double)


def gradients_of_runs(function, inputs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Return values and gradients of a scalar function: of its runs at once, and one by one."""
    places = tuple(range(len(inputs)))
    mapped = vmap(grad_and_value(function, argnums=places), randomness="different")
    together, _ = mapped(*inputs)
    single = []
    for run in range(RUNS):
        own = [value[run].double().requires_grad_() for value in inputs]
        function(*own).backward()
        single.append([value.grad for value in own])
    return list(together), [torch.stack(parts) for parts in zip(*single)]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("width", [16, 40])
def test_activation_and_its_gradients(width: int, training: bool) -> None:
    torch.manual_seed(0)
    u, bias, factor = draw(RUNS, N, width), draw(RUNS, width), draw(N, width)
    kept = mask(4, width, training)

    def loss(u: Tensor, bias: Tensor) -> Tensor:
        if u.dtype == torch.float32:
            return (activate(u, bias, stream(training), 4) * factor.float()).sum()
        return (F.gelu(u + bias) * kept * factor).sum()

    ours, exact = gradients_of_runs(loss, [u.float(), bias.float()])
    for our, expected in zip(ours, exact):
        torch.testing.assert_close(our.double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("width", [16, 40])
def test_residual_connection_with_norm_and_its_gradients(width: int, training: bool) -> None:
    torch.manual_seed(0)
    h, branch = draw(RUNS, N, width), draw(RUNS, N, width)
    bias, gamma, beta = draw(RUNS, width), draw(RUNS, width), draw(RUNS, width)
    factor, other = draw(N, width), draw(N, width)
    kept = mask(7, width, training)

    def loss(h: Tensor, branch: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
        if h.dtype == torch.float32:
            out, y = residual_norm(h, branch, bias, gamma, beta, stream(training), 7)
        else:
            out = h + (branch + bias) * kept
            y = F.layer_norm(out, (width,), gamma, beta)
        return (y * factor.to(y)).sum() + (out * other.to(y)).sum()

    inputs = [value.float() for value in (h, branch, bias, gamma, beta)]
    ours, exact = gradients_of_runs(loss, inputs)
    for our, expected in zip(ours, exact):
        torch.testing.assert_close(our.double(), expected, rtol=1e-4, atol=1e-4)


def test_norm_without_branch() -> None:
    torch.manual_seed(0)
    h, gamma, beta, factor = draw(RUNS, N, 24), draw(RUNS, 24), draw(RUNS, 24), draw(N, 24)

    def loss(h: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
        if h.dtype == torch.float32:
            out, y = residual_norm(h, None, None, gamma, beta, stream(False), 0)
        else:
            out = h
            y = F.layer_norm(h, (24,), gamma, beta)
        return (y * factor.to(y)).sum() + out.square().sum()

    ours, exact = gradients_of_runs(loss, [value.float() for value in (h, gamma, beta)])
    for our, expected in zip(ours, exact):
        torch.testing.assert_close(our.double(), expected, rtol=1e-4, atol=1e-4)


def test_sum_of_products_and_its_gradients() -> None:
    torch.manual_seed(0)
    first, second, weight = draw(RUNS, N, 6), draw(RUNS, N, 6), draw(RUNS, 2, 6, 5)
    factor = draw(N, 5)

    def loss(first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
        return (linear([first, second], weight) * factor.to(first)).square().sum()

    ours, exact = gradients_of_runs(loss, [value.float() for value in (first, second, weight)])
    for our, expected in zip(ours, exact):
        torch.testing.assert_close(our.double(), expected, rtol=1e-4, atol=1e-3)


def test_runs_lie_side_by_side_in_memory() -> None:
    """Between two operations nothing is copied: the layout is that of a sparse product."""
    terms = torch.randn(N, RUNS, 8)

    def product(term: Tensor, weight: Tensor) -> Tensor:
        return linear([term], weight)

    out = vmap(product, in_dims=(1, 0), out_dims=1)(terms, torch.randn(RUNS, 1, 8, 4))
    assert out.is_contiguous()
    assert out.shape == (N, RUNS, 4)
