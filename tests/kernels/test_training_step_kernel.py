"""Train batched runs with the GPU kernels in Triton's interpreter; compare with single runs."""

import pytest
import torch
import torch.nn.functional as F
from helpers import triton_on_cpu  # noqa: F401  before any kernel is defined
from torch_geometric.data import Data

from nfgnn import load_dataset, split
from nfgnn.kernels import degree_order, training_step
from nfgnn.kernels import recurrence as triton_backend
from nfgnn.nn import fused_mlp
from nfgnn.nn.gates import term_filter
from nfgnn.spectral import csr, recurrence, scaled_laplacian
from nfgnn.training import RunConfig, TrainingConfig, fit, fused_loss, stopping
from nfgnn.training import batched as trainer
from nfgnn.training import optimizer as optimizers
from nfgnn.training.batched import Member, fit_batched
from nfgnn.training.optimizer import StackedAdam
from nfgnn.training.stopping import BatchedStopping

NODES = 12  # the interpreter runs one program after the other


def use_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sparse product, filter, loss and step through Triton."""
    for module in (csr, recurrence):
        monkeypatch.setattr(module, "backend", lambda x: triton_backend)
    monkeypatch.setattr(term_filter, "_use_kernel", lambda terms: True)
    for module in (fused_loss, optimizers, stopping, trainer, fused_mlp):
        monkeypatch.setattr(module, "triton_supports", lambda x: True)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    use_kernels(monkeypatch)


def runs(data: Data, model: str, settings: list[dict]) -> list[Member]:
    members = []
    for seed, own in enumerate(settings):
        config = RunConfig.resolve(
            model, {"epochs": 2, "K": 2, "hidden_channels": 4, **own}, None, None, "none"
        )
        torch.manual_seed(seed)
        part = split(data, "full", seed)
        members.append(
            Member(
                config.build(data.num_features, data.num_classes, data.num_nodes),
                part.train_mask,
                part.val_mask,
                config.training,
            )
        )
    return members


def check_without_dropout(
    data: Data, settings: list[dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the kernels, all at once, as with torch one by one."""
    expected = [
        fit(
            m.model,
            Data(
                x=data.x,
                edge_index=data.edge_index,
                y=data.y,
                train_mask=m.train_mask,
                val_mask=m.val_mask,
            ),
            m.config,
        )
        for m in runs(data, "NFGNN", settings)
    ]
    use_kernels(monkeypatch)
    for history, reference in zip(fit_batched(runs(data, "NFGNN", settings), data), expected):
        assert history.val_loss == pytest.approx(reference.val_loss, rel=1e-4)
        assert history.train_loss == pytest.approx(reference.train_loss, rel=1e-4)
        assert history.val_accuracy == pytest.approx(reference.val_accuracy)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_without_dropout_equal_to_the_torch_backend(
    count: int, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = load_dataset("mixed", num_nodes=NODES, num_features=6)
    data.x = data.x.to_sparse_csr() if sparse else data.x
    check_without_dropout(
        data, [{"dropout": 0.0, "lr": 0.01 * (seed + 1)} for seed in range(count)], monkeypatch
    )


@pytest.mark.parametrize("link", ["none", "scores"])
def test_a_large_graph_is_put_in_order_unless_weights_belong_to_nodes(
    link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is learned does not depend on it; and the recurrence then needs no order of its own."""
    for module in (trainer, triton_backend):
        monkeypatch.setattr(module, "LARGE", 4)
    data, asked = load_dataset("mixed", num_nodes=NODES, num_features=6), []
    monkeypatch.setattr(
        trainer, "degree_order", lambda *args: asked.append(1) or degree_order(*args)
    )
    check_without_dropout(data, [{"dropout": 0.0, "link": link}] * 2, monkeypatch)
    assert bool(asked) == (link == "none")
    order, edge_index = degree_order(data.edge_index, data.num_nodes)
    operator = scaled_laplacian(edge_index, num_nodes=data.num_nodes)
    assert triton_backend._Graph._make(operator, torch.float32).order is None
    torch.testing.assert_close(
        operator.degree, scaled_laplacian(data.edge_index, num_nodes=NODES).degree[order]
    )


@pytest.mark.parametrize(("n", "runs", "classes"), [(150, 1, 2), (37, 3, 5), (70, 2, 9)])
@pytest.mark.parametrize("smoothing", [None, (0.0, 0.3, 0.1)])
def test_loss_gradient_and_accuracy(
    n: int, runs: int, classes: int, smoothing: tuple | None
) -> None:
    """Against torch's own cross-entropy of every run's nodes; both ours, kernel and torch."""
    torch.manual_seed(0)
    logits, y = 3 * torch.randn(n, runs, classes), torch.randint(classes, (n,))
    chosen = torch.rand(runs, n) < 0.4
    share = None if smoothing is None else torch.tensor(smoothing[:runs])
    weight = chosen / chosen.sum(1, keepdim=True)
    for ours in (training_step.loss_and_gradient, fused_loss.loss_and_gradient):
        loss, accuracy, gradient = ours(logits, weight, y, share)
        for s, own in enumerate(chosen):
            z = logits[:, s].clone().requires_grad_()
            spread = 0.0 if share is None else float(share[s])
            expected = F.cross_entropy(z[own], y[own], label_smoothing=spread)
            expected.backward()
            torch.testing.assert_close(loss[s], expected.detach())
            torch.testing.assert_close(gradient[:, s], z.grad)
            torch.testing.assert_close(accuracy[s], (z[own].argmax(-1) == y[own]).float().mean())


def test_adam_is_torchs_and_only_of_active_runs() -> None:
    torch.manual_seed(0)
    configs = [
        TrainingConfig(lr=0.1, weight_decay=0.2, filter_lr=0.3, filter_weight_decay=0.4),
        TrainingConfig(),
    ]
    theta = torch.randn(2, 1500)
    parts = [
        [row[:1100].clone().requires_grad_(), row[1100:].clone().requires_grad_()] for row in theta
    ]
    active, adam = torch.ones(2, dtype=torch.bool), StackedAdam(theta, 1100, configs)
    theirs = [
        torch.optim.Adam(
            [{"params": part, "lr": lr, "weight_decay": wd} for part, lr, wd in zip(*groups)]
        )
        for groups in (
            (own, (c.lr, c.filter_lr), (c.weight_decay, c.filter_weight_decay))
            for own, c in zip(parts, configs)
        )
    ]
    for step in range(4):
        gradient = torch.randn_like(theta)
        active[1] = step < 2
        adam.powers.mul_(adam.betas)
        rates = (adam.powers, adam.lr, adam.weight_decay)
        training_step.adam(theta, gradient, adam.m, adam.v, *rates, active, 1100)
        for row, optimizer, going, g in zip(parts, theirs, active, gradient):
            row[0].grad, row[1].grad = g[:1100].clone(), g[1100:].clone()
            if going:
                optimizer.step()
    for row, own in zip(theta, parts):
        torch.testing.assert_close(row, torch.cat(own).detach())


def test_stopping_is_that_of_the_torch_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses that fall and then rise at a different epoch in every run; one is not a number."""
    weights = torch.zeros(3, 5)
    states = [BatchedStopping(weights, epochs=12, patience=3) for _ in range(2)]
    losses = torch.stack([(torch.arange(12.0) - least).abs() for least in (2, 6, 11)], 1)
    losses[4, 1] = torch.nan
    for epoch in range(12):
        for state, kernel in zip(states, (False, True)):
            monkeypatch.setattr(stopping, "triton_supports", lambda x, kernel=kernel: kernel)
            weights.fill_(epoch)
            state.record(weights, losses[epoch] + 1, losses[epoch], losses[epoch] / 100)
            state.epoch += 1
    for name in ("curves", "window", "active", "epochs", "best_loss", "improved", "best"):
        ours, theirs = (vars(state)[name] for state in states)
        torch.testing.assert_close(ours, theirs, equal_nan=True)
    assert states[0].best[:, 0].tolist() == [2, 6, 11]
    assert not states[0].active[0]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    ("sparse", "model", "rates"),
    [
        (False, "NFGNN", (0.5, 0.5)),
        (False, "NFGNN", (0.2, 0.6)),
        (False, "BernNet", (0.2, 0.6)),
        (True, "NFGNN", (0.2, 0.6)),
        (True, "BernNet", (0.5, 0.5)),
    ],
)
def test_dropout(sparse: bool, model: str, rates: tuple[float, float]) -> None:
    data = load_dataset("mixed", num_nodes=NODES, num_features=6)
    data.x = data.x.to_sparse_csr() if sparse else data.x
    settings = [{"dropout": rate, "epochs": 1, "K": 1} for rate in rates]
    histories = fit_batched(runs(data, model, settings), data)
    assert all(torch.isfinite(torch.tensor(history.train_loss)).all() for history in histories)
