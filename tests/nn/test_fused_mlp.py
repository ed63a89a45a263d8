"""The kernels of a two-layer MLP against autograd in float64 with the same dropout masks."""

import pytest
import torch
import torch.nn.functional as F
from helpers import triton_on_cpu  # noqa: F401  before any kernel is defined
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap

from nfgnn.kernels import fused_mlp as mlp_kernel
from nfgnn.kernels.dropout_mask import kept_values
from nfgnn.nn import MLP, fused_mlp
from nfgnn.training.batched import _Pair

SIZES = [(70, 9, 8, 2), (33, 65, 20, 5), (20, 128, 16, 16)]


def masks(n: int, widths: tuple[int, int], rate: float, seeds: Tensor) -> list[Tensor]:
    """Which values of n rows and so many columns are kept under either seed of a run."""
    return [kept_values(seed, n, columns, rate) for columns, seed in zip(widths, seeds.tolist())]


def layers(runs: int, features: int, width: int, classes: int) -> list[Tensor]:
    torch.manual_seed(0)
    shapes = [(runs, width, features), (runs, width), (runs, classes, width), (runs, classes)]
    return [torch.randn(shape, dtype=torch.double) for shape in shapes]


@pytest.mark.parametrize(("n", "features", "width", "classes"), SIZES)
def test_scores_and_gradients_equal_autograd_under_the_same_masks(
    n: int, features: int, width: int, classes: int
) -> None:
    rates, seeds = torch.tensor([0.5, 0.2]), torch.tensor([[3, 4], [5, 6]])
    exact = layers(2, features, width, classes)
    x, grad = torch.randn(n, features), torch.randn(n, 2, classes)
    ours = [part.float() for part in exact]
    out, held, hidden = mlp_kernel.forward(x, *ours, rates, seeds)
    gradients = mlp_kernel.backward(grad, x, hidden, ours[2], rates, seeds)
    for run, rate in enumerate(rates.tolist()):
        first, second = masks(n, (features, width), rate, seeds[run])
        w1, b1, w2, b2 = own = [part[run].clone().requires_grad_() for part in exact]
        dropped = x.double() * first / (1 - rate)
        z = (F.relu(dropped @ w1.T + b1) * second / (1 - rate)) @ w2.T + b2
        plain = F.relu(x.double() @ w1.T + b1) @ w2.T + b2
        torch.testing.assert_close(out[:, run].double(), z.detach(), rtol=1e-4, atol=1e-3)
        torch.testing.assert_close(held[:, run].double(), plain.detach(), rtol=1e-4, atol=1e-3)
        z.backward(grad[:, run].double())
        for our, parameter in zip(gradients, own):
            torch.testing.assert_close(our[run].double(), parameter.grad, rtol=1e-4, atol=1e-3)


def test_the_share_that_stays_and_independence() -> None:
    """About 1 - p of all values; as many pairs of two masks agree as chance has it."""
    drawn = [masks(512, (64, 64), 0.3, torch.tensor(seeds)) for seeds in ((1, 2), (7, 8))]
    flat = [mask.float().flatten() for pair in drawn for mask in pair]
    for mask in flat:
        assert mask.mean() == pytest.approx(0.7, abs=5 * (0.21 / mask.numel()) ** 0.5)
    for i in range(4):
        for j in range(i):
            assert (
                torch.corrcoef(torch.stack([flat[i], flat[j]]))[0, 1].abs()
                < 5 / flat[i].numel() ** 0.5
            )
    mask = drawn[0][0].float()
    for shifted in (mask.roll(1, 0), mask.roll(1, 1), mask.roll(8, 1)):
        assert (
            torch.corrcoef(torch.stack([mask.flatten(), shifted.flatten()]))[0, 1].abs()
            < 5 / mask.numel() ** 0.5
        )


@pytest.mark.parametrize("own_features", [False, True])
def test_runs_of_a_batch_are_single_runs_with_draws_of_their_own(
    own_features: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiny rates drop nothing and equal the plain layers. At 0.5 every run draws its own mask."""
    monkeypatch.setattr(fused_mlp, "triton_supports", lambda x: True)
    torch.manual_seed(0)
    models = [MLP(9, 3, 8, dropout=1e-7) for _ in range(3)]
    y = torch.randint(3, (30,))
    x = torch.randn(3, 30, 9)
    if not own_features:
        x[:] = x[0]
    states = [model.state_dict() for model in models]
    stacked = {name: torch.stack([state[name] for state in states]) for name in states[0]}
    template = MLP(9, 3, 8, dropout=1e-7)

    def loss(
        parameters: dict[str, Tensor], rate: Tensor, features: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        template.dropout = rate
        scores, held = functional_call(
            _Pair(template),
            {f"model.{k}": v for k, v in parameters.items()},
            (features.get("x", x[0]),),
        )
        return F.cross_entropy(scores, y), (scores, held)

    mapped = vmap(grad_and_value(loss, has_aux=True), randomness="different")
    features = {"x": x} if own_features else {}
    gradients, (_, (scores, held)) = mapped(stacked, torch.full((3,), 1e-7), features)
    for run, model in enumerate(models):
        model.eval()
        expected = model(x[run])
        torch.testing.assert_close(scores[run], expected.detach(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(held[run], expected.detach(), rtol=1e-4, atol=1e-5)
        F.cross_entropy(expected, y).backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(gradients[name][run], parameter.grad, rtol=1e-4, atol=1e-5)
    same = {name: value[:1].expand_as(value) for name, value in stacked.items()}
    if own_features:
        features = {"x": x[:1].expand_as(x)}
    _, (_, (scores, held)) = mapped(same, torch.full((3,), 0.5), features)
    assert not torch.equal(scores[0], scores[1])
    torch.testing.assert_close(held[0], held[1])
