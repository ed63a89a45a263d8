"""Training on a whole graph: steps, the weights that are kept, the end."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data

from nfgnn.data import split
from nfgnn.errors import UserError
from nfgnn.nn import NFGNN
from nfgnn.training import TrainingConfig, fit
from nfgnn.training.optimizer import parameter_groups


@pytest.fixture
def data() -> Data:
    from nfgnn.data import load_dataset

    return split(load_dataset("karate"), "stratified", 0)


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


def test_the_training_loss_becomes_small(data: Data) -> None:
    torch.manual_seed(0)
    model = NFGNN(data.num_features, data.num_classes, K=3, dropout=0.0)
    history = fit(model, data, TrainingConfig(epochs=150, lr=0.05))
    assert history.train_loss[-1] < 0.05


def test_number_of_threads_is_left_as_it_was(data: Data) -> None:
    torch.set_num_threads(2)
    fit(NFGNN(data.num_features, data.num_classes), data, TrainingConfig(epochs=1))
    assert torch.get_num_threads() == 2


def test_training_that_cannot_succeed_is_refused(data: Data) -> None:
    with pytest.raises(UserError, match="reduce the learning rates"):
        fit(NFGNN(data.num_features, data.num_classes), data, TrainingConfig(epochs=3, lr=1e30))
    data.val_mask = torch.zeros_like(data.val_mask)
    with pytest.raises(UserError, match="val_mask is empty"):
        fit(NFGNN(data.num_features, data.num_classes), data, TrainingConfig(epochs=3))
