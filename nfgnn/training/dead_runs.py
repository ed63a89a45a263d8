"""Recognise dead runs: trainings that never rise above chance.

Some initialisations never leave the start: the network predicts nearly the same for every node,
its loss stays that of a constant prediction, and the validation loss selects an arbitrary epoch.

A run is dead if both of these hold over all of its epochs:

- The validation accuracy stays within three standard errors of the share of the largest class.
  Where the metric is ROC-AUC, it also stays within three standard errors of 1/2.
- The training loss never covers more than 3 % of the way from the loss of the best constant
  prediction to the least possible loss, which label smoothing keeps above 0.

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
from nfgnn.training.metrics import ROC_AUC

_STANDARD_ERRORS = 3.0
_LEAST_DECREASE = 0.03
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
    balanced = config.class_weight == "balanced"
    chance = constant_loss(data, config.label_smoothing, balanced)
    possible = chance - least_loss(data.num_classes, config.label_smoothing)
    learned = min(finite_losses, default=math.inf) < chance - _LEAST_DECREASE * possible
    return not learned and not _scores_above_chance(history, data)


def _scores_above_chance(history: History, data: Data) -> bool:
    if max(history.val_accuracy) > highest_chance_accuracy(data):
        return True
    # The labels of a rare class may be ranked well although no node is assigned to it.
    ranked = history.criterion.metric == ROC_AUC and data.num_classes == 2
    return ranked and max(history.val_metric) > highest_chance_roc_auc(data)


def constant_loss(data: Data, label_smoothing: float = 0.0, balanced: bool = False) -> float:
    """Return the least training loss of a prediction that is the same for every node.

    It is the entropy of the mean training target, in which ``balanced`` weights give all classes
    the same share.
    """
    shares = _class_shares(data, data.train_mask)
    if balanced:
        shares = (shares > 0) / (shares > 0).sum()
    target = (1 - label_smoothing) * shares + label_smoothing / data.num_classes
    return float(torch.special.entr(target).sum())


def least_loss(num_classes: int, label_smoothing: float) -> float:
    """Return the loss of predictions that equal their smoothed targets."""
    target = torch.full((num_classes,), label_smoothing / num_classes, dtype=torch.float64)
    target[0] += 1 - label_smoothing
    return float(torch.special.entr(target).sum())


def highest_chance_accuracy(data: Data) -> float:
    """Return the share of the largest class in validation plus three standard errors."""
    share = float(_class_shares(data, data.val_mask).max())
    nodes = int(data.val_mask.sum())
    return share + _STANDARD_ERRORS * math.sqrt(share * (1 - share) / nodes)


def highest_chance_roc_auc(data: Data) -> float:
    """Return 1/2 plus three standard errors of the ROC-AUC of random scores."""
    positive = int(data.y[data.val_mask].sum())
    nodes = int(data.val_mask.sum())
    pairs = max(positive * (nodes - positive), 1)
    return 0.5 + _STANDARD_ERRORS * math.sqrt((nodes + 1) / (12 * pairs))


def _class_shares(data: Data, mask: Tensor) -> Tensor:
    y: Tensor = data.y[mask]
    return torch.bincount(y, minlength=data.num_classes).double() / y.numel()


def _updates_per_epoch(data: Data, config: TrainingConfig) -> int:
    if config.batch_size == 0:
        return config.num_partition_batches
    return math.ceil(int(data.train_mask.sum()) / config.batch_size)
