"""The stopping rule: by hand, and the batched form against the plain one."""

import math

import torch
from torch import nn

from nfgnn.training.stopping import BatchedStopping, BestWeights, should_stop


def test_stops_when_the_loss_exceeds_the_mean_of_the_values_before() -> None:
    losses = [3.0, 2.0, 1.0]
    assert not should_stop(losses, 3)  # not before `patience` epochs have passed
    assert not should_stop([*losses, 2.0], 3)  # 2.0 is the mean of the three before
    assert should_stop([*losses, 2.01], 3)
    assert should_stop([100.0, *losses, 2.01], 3)  # older values do not count


def test_the_weights_of_least_loss_are_restored() -> None:
    model = nn.Linear(1, 1)
    best = BestWeights(model)
    for value, loss in ((1.0, 0.5), (2.0, 0.3), (3.0, math.nan), (4.0, 0.3), (5.0, 0.4)):
        nn.init.constant_(model.weight, value)
        best.update(loss, loss)
    best.restore()
    assert model.weight.item() == 2.0  # the first of two equal losses


def test_batched_runs_stop_and_keep_weights_as_single_runs_do() -> None:
    """Random losses, one of them not a number for a while."""
    generator = torch.Generator().manual_seed(0)
    losses = torch.rand(40, 6, generator=generator, dtype=torch.float64)
    losses[10:13, 2] = torch.nan
    patience = 5
    weights = torch.zeros(6, 2, dtype=torch.float64)
    batched = BatchedStopping(weights, epochs=40, patience=patience)
    for epoch in range(41):
        # The pass before epoch t + 1 evaluates the weights after epoch t.
        val_loss = losses[epoch - 1] if epoch else torch.zeros(6, dtype=torch.float64)
        weights.fill_(epoch)
        batched.record(weights, val_loss + 1, val_loss, val_loss / 2)
        batched.epoch += 1
    for run, history in enumerate(batched.histories()):
        seen: list[float] = []
        for loss in losses[:, run].tolist():
            seen.append(loss)
            if should_stop(seen, patience):
                break
        assert history.epochs == len(seen)
        torch.testing.assert_close(
            torch.tensor(history.val_loss), torch.tensor(seen), equal_nan=True
        )
        finite = [loss for loss in seen if not math.isnan(loss)]
        assert batched.best[run, 0].item() == 1 + seen.index(min(finite))
