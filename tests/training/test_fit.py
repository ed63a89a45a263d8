"""The protocol of training: stopping rule, kept weights, optimiser groups."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data

from nfgnn.data import split
from nfgnn.errors import UserError
from nfgnn.nn import NFGNN
from nfgnn.training import History, TrainingConfig, fit
from nfgnn.training.fit import parameter_groups


@pytest.fixture
def data() -> Data:
    from nfgnn.data import load_dataset

    return split(load_dataset("karate"), "stratified", 0)


def test_stops_when_the_loss_exceeds_the_mean_of_the_values_before() -> None:
    history = History(val_loss=[3.0, 2.0, 1.0])
    assert not history.should_stop(3)  # not before `patience` epochs have passed
    history.val_loss.append(2.0)
    assert not history.should_stop(3)  # 2.0 is the mean of the three before
    history.val_loss[-1] = 2.01
    assert history.should_stop(3)
    history.val_loss = [100.0, 3.0, 2.0, 1.0, 2.01]
    assert history.should_stop(3)  # older values do not count


class Scripted(nn.Module):
    """Validation losses as scripted: logits that put a wanted probability on the right class."""

    def __init__(self, losses: list[float], y: torch.Tensor) -> None:
        super().__init__()
        self.losses, self.y = losses, y
        self.step = nn.Parameter(torch.zeros(()))
        self.epoch = -1

    def forward(self, x, edge_index, edge_weight=None):
        if self.training:
            self.epoch += 1
            with torch.no_grad():
                self.step.fill_(self.epoch)
            return torch.zeros(len(self.y), 2) + 0 * self.step
        p = torch.exp(-torch.tensor(self.losses[self.epoch]))
        right = torch.log(p / (1 - p))
        return F.one_hot(self.y, 2) * right


def test_the_weights_of_least_validation_loss_are_restored() -> None:
    y = torch.tensor([0, 1, 0, 1])
    data = Data(x=torch.ones(4, 1), y=y, edge_index=torch.empty(2, 0, dtype=torch.long))
    data.train_mask = data.val_mask = torch.ones(4, dtype=torch.bool)
    losses = [0.9, 0.5, 0.3, 0.4, 0.3, 0.6, 0.7, 0.2]
    model = Scripted(losses, y)
    history = fit(model, data, TrainingConfig(patience=3, lr=0.0, weight_decay=0.0))
    # Epoch 5: 0.6 exceeds the mean of 0.3, 0.4, 0.3. The later 0.2 is never seen.
    assert history.epochs == 6
    assert history.best_epoch == 2
    assert float(model.step.detach()) == 2
    assert history.val_loss == pytest.approx(losses[:6], abs=1e-6)


def test_two_optimiser_groups() -> None:
    config = TrainingConfig(lr=0.1, weight_decay=0.2, filter_lr=0.3, filter_weight_decay=0.4)
    model = NFGNN(5, 2)
    rest, filters = parameter_groups(model, config)
    assert {id(p) for p in filters["params"]} == {id(p) for p in model.prop.parameters()}
    assert (filters["lr"], filters["weight_decay"]) == (0.3, 0.4)
    assert {id(p) for p in rest["params"]} == {id(p) for p in model.mlp.parameters()}
    assert (rest["lr"], rest["weight_decay"]) == (0.1, 0.2)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_a_step_is_adam_on_the_cross_entropy_of_the_training_nodes(
    data: Data, smoothing: float
) -> None:
    torch.manual_seed(0)
    model = NFGNN(data.num_features, data.num_classes, K=3, dropout=0.0)
    reference = copy.deepcopy(model)
    config = TrainingConfig(epochs=3, patience=200, label_smoothing=smoothing)
    history = fit(model, data, config)
    optimizer = torch.optim.Adam(parameter_groups(reference, config))
    x = data.x.to_dense()
    losses = []
    for _ in range(3):
        out = reference(x, data.edge_index)
        optimizer.zero_grad()
        F.cross_entropy(
            out[data.train_mask], data.y[data.train_mask], label_smoothing=smoothing
        ).backward()
        optimizer.step()
        with torch.no_grad():
            out = reference(x, data.edge_index)
            losses.append(float(F.cross_entropy(out[data.val_mask], data.y[data.val_mask])))
    assert history.val_loss == pytest.approx(losses, rel=1e-4)


def test_it_learns_what_can_be_learned(data: Data) -> None:
    torch.manual_seed(0)
    model = NFGNN(data.num_features, data.num_classes, K=3, dropout=0.0)
    history = fit(model, data, TrainingConfig(epochs=150, lr=0.05))
    assert history.train_loss[-1] < 0.05


def test_number_of_threads_is_left_as_it_was(data: Data) -> None:
    torch.set_num_threads(2)
    fit(NFGNN(data.num_features, data.num_classes), data, TrainingConfig(epochs=1))
    assert torch.get_num_threads() == 2


def test_hopeless_training_is_said(data: Data) -> None:
    with pytest.raises(UserError, match="lower the learning rates"):
        fit(NFGNN(data.num_features, data.num_classes), data, TrainingConfig(epochs=3, lr=1e30))
    data.val_mask = torch.zeros_like(data.val_mask)
    with pytest.raises(UserError, match="val_mask is empty"):
        fit(NFGNN(data.num_features, data.num_classes), data, TrainingConfig(epochs=3))
