"""The operations of a residual block: the GPU's kernels against autograd in float64."""

import pytest
import torch
import torch.nn.functional as F
from helpers import triton_on_cpu  # noqa: F401  before any kernel is defined
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from nfgnn.kernels.dropout_mask import kept_values
from nfgnn.nn.batch_norm import RunningStatistics, batch_norm
from nfgnn.nn.residual_block import (
    DropoutStream,
    activate,
    layer_norm,
    residual_add,
    residual_norm,
)
from nfgnn.nn.terms_linear import linear

N = 23
RUNS = 3
RATE = 0.4
SEED = 5


@pytest.fixture(autouse=True)
def _kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("residual_block", "terms_linear", "batch_norm"):
        monkeypatch.setattr(f"nfgnn.nn.{module}.is_fused", lambda x: x.dtype == torch.float32)


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


def test_layer_norm_and_its_gradients() -> None:
    torch.manual_seed(0)
    h, gamma, beta, factor = draw(RUNS, N, 24), draw(RUNS, 24), draw(RUNS, 24), draw(N, 24)

    def loss(h: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
        if h.dtype == torch.float32:
            y = layer_norm(h, gamma, beta)
        else:
            y = F.layer_norm(h, (24,), gamma, beta)
        return (y * factor.to(y)).sum() + h.square().sum()

    ours, exact = gradients_of_runs(loss, [value.float() for value in (h, gamma, beta)])
    for our, expected in zip(ours, exact):
        torch.testing.assert_close(our.double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_residual_connection_without_norm_and_its_gradients(training: bool, has_bias: bool) -> None:
    torch.manual_seed(0)
    h, branch, bias, factor = draw(RUNS, N, 16), draw(RUNS, N, 16), draw(RUNS, 16), draw(N, 16)
    kept = mask(7, 16, training)

    def loss(h: Tensor, branch: Tensor, bias: Tensor | None = None) -> Tensor:
        if h.dtype == torch.float32:
            out = residual_add(h, branch, bias, stream(training), 7)
        else:
            added = branch if bias is None else branch + bias
            out = h + added * kept
        return (out * factor.to(out)).square().sum()

    inputs = [h, branch, bias] if has_bias else [h, branch]
    ours, exact = gradients_of_runs(loss, [value.float() for value in inputs])
    for our, expected in zip(ours, exact):
        torch.testing.assert_close(our.double(), expected, rtol=1e-4, atol=1e-4)


class BatchNorm(nn.Module):
    """Our batch normalisation with the interface of torch's."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels))
        self.bias = nn.Parameter(torch.empty(channels))
        self.statistics = RunningStatistics(channels)

    def forward(self, h: Tensor) -> Tensor:
        return batch_norm(h, self.weight, self.bias, self.statistics, self.training)


@pytest.mark.parametrize("dtype", [torch.float32, torch.double])
def test_batch_norm_of_runs_equals_torch(dtype: torch.dtype) -> None:
    """float32 takes the path of a GPU, float64 that of a CPU. Three passes, then evaluation."""
    torch.manual_seed(0)
    ours = BatchNorm(16).to(dtype)
    passes = [2 * torch.randn(RUNS, N, 16, dtype=dtype) + 3 for _ in range(3)]
    weights = {name: torch.randn(RUNS, 16, dtype=dtype) for name in ("weight", "bias")}
    factor = torch.randn(N, 16, dtype=dtype)
    statistics = {
        "statistics.mean": torch.zeros(RUNS, 16, dtype=dtype),
        "statistics.var": torch.ones(RUNS, 16, dtype=dtype),
    }

    def loss(weights: dict[str, Tensor], h: Tensor, statistics: dict[str, Tensor]) -> Tensor:
        return (functional_call(ours, weights | statistics, (h,)) * factor).square().sum()

    mapped = vmap(grad_and_value(loss, argnums=(0, 1)))
    found = [mapped(weights, h, statistics) for h in passes]
    ours.eval()
    evaluated = vmap(loss)(weights, passes[0], statistics)
    for run in range(RUNS):
        theirs = nn.BatchNorm1d(16).to(dtype)
        theirs.load_state_dict({key: value[run] for key, value in weights.items()}, strict=False)
        for h, ((gradients, d_h), value) in zip(passes, found):
            own = h[run].clone().requires_grad_()
            theirs.zero_grad()
            expected = (theirs(own) * factor).square().sum()
            expected.backward()
            torch.testing.assert_close(value[run], expected.detach())
            torch.testing.assert_close(d_h[run], own.grad, rtol=1e-4, atol=1e-4)
            for name, parameter in theirs.named_parameters():
                torch.testing.assert_close(gradients[name][run], parameter.grad)
        for name in ("mean", "var"):
            running = getattr(theirs, f"running_{name}")
            torch.testing.assert_close(statistics[f"statistics.{name}"][run], running)
        expected = (theirs.eval()(passes[0][run]) * factor).square().sum()
        torch.testing.assert_close(evaluated[run], expected.detach())


def test_batch_norm_has_the_precision_of_the_weights() -> None:
    """The residual stream and the statistics are float32, whatever the precision of the rest."""
    module = BatchNorm(16).bfloat16()
    module.statistics.float().reset()
    nn.init.ones_(module.weight)
    nn.init.zeros_(module.bias)
    h = torch.randn(N, 16)
    for training in (True, False):
        y = module.train(training)(h)
        assert y.dtype == torch.bfloat16
    assert module.statistics.mean.dtype == torch.float32
    y.float().sum().backward()
    assert module.weight.grad.dtype == torch.bfloat16


def test_sum_of_products_and_its_gradients() -> None:
    torch.manual_seed(0)
    first, second, weight = draw(RUNS, N, 6), draw(RUNS, N, 6), draw(RUNS, 2, 6, 5)
    factor = draw(N, 5)

    def loss(first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
        return (linear([first, second], weight) * factor.to(first)).square().sum()

    ours, exact = gradients_of_runs(loss, [value.float() for value in (first, second, weight)])
    for our, expected in zip(ours, exact):
        torch.testing.assert_close(our.double(), expected, rtol=1e-4, atol=1e-3)


def test_terms_may_have_any_layout_in_memory() -> None:
    """A transposed matrix, every second column of a wider one, and one column repeated."""
    torch.manual_seed(0)
    weight = draw(1, 6, 5).float().requires_grad_()
    for term in (draw(6, N).T, draw(N, 12)[:, ::2], draw(N, 1).expand(N, 6)):
        out = linear([term.float()], weight)
        (found,) = torch.autograd.grad(out.square().sum(), weight)
        expected = 2 * term.T @ (term @ weight[0].double())
        torch.testing.assert_close(found[0].double(), expected, rtol=1e-4, atol=1e-3)


def test_runs_lie_side_by_side_in_memory() -> None:
    """Between two operations nothing is copied: the layout is that of a sparse product."""
    terms = torch.randn(N, RUNS, 8)

    def product(term: Tensor, weight: Tensor) -> Tensor:
        return linear([term], weight)

    out = vmap(product, in_dims=(1, 0), out_dims=1)(terms, torch.randn(RUNS, 1, 8, 4))
    assert out.is_contiguous()
    assert out.shape == (N, RUNS, 4)
