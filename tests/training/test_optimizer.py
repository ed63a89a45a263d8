"""Optimizer groups, and Adam against torch's own class."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from nfgnn.nn import NFGNN
from nfgnn.training import TrainingConfig
from nfgnn.training.optimizer import FusedAdam, StackedAdam, parameter_groups

CONFIG = TrainingConfig(lr=0.1, weight_decay=0.2, filter_lr=0.3, filter_weight_decay=0.4)


def test_two_optimizer_groups() -> None:
    model = NFGNN(5, 2)
    rest, filters = parameter_groups(model, CONFIG)
    assert {id(p) for p in filters["params"]} == {id(p) for p in model.prop.parameters()}
    assert (filters["lr"], filters["weight_decay"]) == (0.3, 0.4)
    assert {id(p) for p in rest["params"]} == {id(p) for p in model.mlp.parameters()}
    assert (rest["lr"], rest["weight_decay"]) == (0.1, 0.2)


def random_gradients(model: nn.Module, seed: int) -> None:
    torch.manual_seed(seed)
    for p in model.parameters():
        p.grad = torch.randn_like(p)


def test_fused_adam_is_bit_equal_to_torch() -> None:
    model = NFGNN(5, 2)
    reference = copy.deepcopy(model)
    ours = FusedAdam(model, CONFIG)
    theirs = torch.optim.Adam(parameter_groups(reference, CONFIG), fused=True)
    for step in range(4):
        random_gradients(model, step)
        random_gradients(reference, step)
        ours.step()
        theirs.step()
    for p, q in zip(model.parameters(), reference.parameters()):
        assert torch.equal(p, q)
        assert p.grad is None


def test_a_restored_state_continues_with_the_same_bits() -> None:
    model = NFGNN(5, 2)
    optimizer = FusedAdam(model, CONFIG)
    random_gradients(model, 0)
    optimizer.step()
    resumed_model = copy.deepcopy(model)
    resumed = FusedAdam(resumed_model, CONFIG)
    resumed.load_state({key: value.clone() for key, value in optimizer.state().items()})
    for own, adam in ((model, optimizer), (resumed_model, resumed)):
        random_gradients(own, 1)
        adam.step()
    for p, q in zip(model.parameters(), resumed_model.parameters()):
        assert torch.equal(p, q)


def test_parameters_without_a_gradient_stay_as_they_are() -> None:
    model = NFGNN(5, 2)
    before = [p.clone() for p in model.parameters()]
    optimizer = FusedAdam(model, CONFIG)
    first = next(model.parameters())
    first.grad = torch.ones_like(first)
    optimizer.step()
    after = list(model.parameters())
    assert not torch.equal(after[0], before[0])
    assert all(torch.equal(p, q) for p, q in zip(after[1:], before[1:]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_stacked_adam_steps_every_row_as_torch_does(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    configs = [CONFIG, TrainingConfig()]
    weights = torch.randn(2, 15, dtype=dtype)
    rows = []
    for row, config in zip(weights, configs):
        parts = [row[:11].clone().requires_grad_(), row[11:].clone().requires_grad_()]
        rates = [(config.lr, config.weight_decay), (config.filter_lr, config.filter_weight_decay)]
        groups = [
            {"params": [part], "lr": lr, "weight_decay": decay}
            for part, (lr, decay) in zip(parts, rates)
        ]
        rows.append((parts, torch.optim.Adam(groups)))
    ours = StackedAdam(weights, 11, configs)
    active = torch.ones(2, dtype=torch.bool)
    for step in range(4):
        gradient = torch.randn_like(weights)
        active[1] = step < 2
        ours.step(weights, gradient, active)
        for (parts, optimizer), own_gradient, going in zip(rows, gradient, active):
            parts[0].grad = own_gradient[:11].clone()
            parts[1].grad = own_gradient[11:].clone()
            if going:
                optimizer.step()
    for row, (parts, _) in zip(weights, rows):
        torch.testing.assert_close(row, torch.cat(parts).detach())


def test_warm_up_is_a_linear_schedule_of_torch() -> None:
    config = replace(CONFIG, warmup_epochs=4)
    model = NFGNN(5, 2)
    reference = copy.deepcopy(model)
    ours = FusedAdam(model, config)
    theirs = torch.optim.Adam(parameter_groups(reference, config), fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(theirs, lambda epoch: min(1.0, (epoch + 1) / 4))
    for epoch in range(6):
        random_gradients(model, epoch)
        random_gradients(reference, epoch)
        ours.step(epoch)
        theirs.step()
        schedule.step()
    for p, q in zip(model.parameters(), reference.parameters()):
        torch.testing.assert_close(p, q)


def test_stacked_adam_warms_up_every_row_by_itself() -> None:
    torch.manual_seed(0)
    configs = [replace(CONFIG, warmup_epochs=epochs) for epochs in (3, 0)]
    weights = torch.randn(2, 15)
    expected = []
    for row, config in zip(weights, configs):
        alone = row[None].clone()
        # The rates of a row are those of a batch of one whose rates are set by hand.
        adam = StackedAdam(alone, 11, [CONFIG])
        generator = torch.Generator().manual_seed(1)
        for epoch in range(5):
            gradient = torch.randn(15, generator=generator)
            factor = min(1.0, (epoch + 1) / max(1, config.warmup_epochs))
            adam.lr = factor * torch.tensor([[CONFIG.lr, CONFIG.filter_lr]])
            adam.step(alone, gradient[None], torch.tensor([True]))
        expected.append(alone[0])
    adam = StackedAdam(weights, 11, configs)
    generator = torch.Generator().manual_seed(1)
    for _ in range(5):
        gradient = torch.randn(15, generator=generator).expand(2, 15)
        adam.step(weights, gradient, torch.tensor([True, True]))
    torch.testing.assert_close(weights, torch.stack(expected))
    adam.keep_rows(torch.tensor([1]))
    assert adam.warmup is not None
    assert adam.warmup.tolist() == [[1.0]]
