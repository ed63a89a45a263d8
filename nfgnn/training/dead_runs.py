"""Recognise dead runs: trainings that never rise above chance.

Some initialisations never leave the start: the network predicts nearly the same for every node,
its loss stays that of a constant prediction, and the validation loss selects an arbitrary epoch.

A run is dead if both of these hold over all of its epochs:

- The validation accuracy stays within three standard errors of the share of the largest class.
- The training loss never falls more than 5 % below that of the best constant prediction.

Either condition alone would flag healthy runs. With five validation nodes, or where one class has
97 % of them, even good models stay within chance in accuracy; but they lower the training loss. So
does a model that memorises random labels. A training without a finite validation loss has diverged
and counts as dead. A training of few updates is not judged.
"""

import math

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.training.config import TrainingConfig
from nfgnn.training.history import History

_STANDARD_ERRORS = 3.0
_LEAST_DECREASE = 0.05
_LEAST_UPDATES = 100
"""Healthy runs have left the start after so many updates of the weights."""


def is_dead(history: History, data: Data, config: TrainingConfig) -> bool:
    """Whether a training diverged, or never rose above chance.

    Args:
        history: of the whole training.
        data: the graph with the masks of the training.
        config: how the model was trained.
    """
    if history.diverged:
        return True
    if history.epochs * _updates_per_epoch(data, config) < _LEAST_UPDATES:
        return False
    finite_losses = [loss for loss in history.train_loss if math.isfinite(loss)]
    chance = constant_loss(data, config.label_smoothing)
    learned = min(finite_losses, default=math.inf) < (1 - _LEAST_DECREASE) * chance
    return not learned and max(history.val_accuracy) <= highest_chance_accuracy(data)


def constant_loss(data: Data, label_smoothing: float = 0.0) -> float:
    """Return the least training loss of a prediction that is the same for every node.

    It is the entropy of the mean training target.
    """
    shares = _class_shares(data, data.train_mask)
    target = (1 - label_smoothing) * shares + label_smoothing / data.num_classes
    return float(torch.special.entr(target).sum())


def highest_chance_accuracy(data: Data) -> float:
    """Return the share of the largest class in validation plus three standard errors."""
    share = float(_class_shares(data, data.val_mask).max())
    nodes = int(data.val_mask.sum())
    return share + _STANDARD_ERRORS * math.sqrt(share * (1 - share) / nodes)


def _class_shares(data: Data, mask: Tensor) -> Tensor:
    y: Tensor = data.y[mask]
    return torch.bincount(y, minlength=data.num_classes).double() / y.numel()


def _updates_per_epoch(data: Data, config: TrainingConfig) -> int:
    if config.batch_size == 0:
        return 1
    return math.ceil(int(data.train_mask.sum()) / config.batch_size)
