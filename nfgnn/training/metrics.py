"""Scores of predictions, and the mean and confidence interval of many runs."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.errors import UserError


def accuracy(probabilities: Tensor, y: Tensor) -> float:
    """Return the share of nodes whose most probable class is their label."""
    return float((probabilities.argmax(-1) == y).double().mean())


def roc_auc(probabilities: Tensor, y: Tensor) -> float:
    """Return the area under the ROC curve of a two-class problem."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y.cpu().numpy(), probabilities[:, 1].cpu().numpy()))


def check_metric(data: Data) -> None:
    """Refuse a graph whose metric is not defined for its number of classes."""
    if data.get("metric") == "roc_auc" and data.num_classes != 2:
        raise UserError(
            f"{data.get('name') or 'the graph'} has {data.num_classes} classes, but its metric "
            "ROC-AUC is defined for two: check the labels, or set data.metric to 'accuracy'"
        )


def scores(probabilities: Tensor, data: Data) -> dict[str, float]:
    """Return the scores on every mask: ``train_accuracy``, ``val_accuracy``, ``test_accuracy``.

    Graphs with the metric ROC-AUC also have ``test_roc_auc`` and so on. Under the inductive
    protocol ``observed_…`` and ``unobserved_…`` take the place of ``test_…``.
    """
    check_metric(data)
    masks = {"train": "train_mask", "val": "val_mask"}
    if data.get("unobserved_mask") is None:
        masks["test"] = "test_mask"
    else:
        masks["observed"] = "test_mask"
        masks["unobserved"] = "unobserved_mask"
    found = {}
    for part, mask in masks.items():
        nodes = data[mask] & (data.y >= 0)
        if not bool(nodes.any()):
            continue
        found[f"{part}_accuracy"] = accuracy(probabilities[nodes], data.y[nodes])
        if data.get("metric") == "roc_auc":
            found[f"{part}_roc_auc"] = roc_auc(probabilities[nodes], data.y[nodes])
    return found


def summarise(values: Sequence[float]) -> dict[str, Any]:
    """Return mean, 95 % confidence interval, standard deviation and all values.

    ``ci95`` is the half-width of the interval of the mean (Student's t). It is ``None`` for a
    single value, and so is ``std``.
    """
    from scipy.stats import t

    sample = torch.tensor(values, dtype=torch.float64)
    n = sample.numel()
    std = None
    ci95 = None
    if n > 1:
        std = float(sample.std())
        ci95 = float(t.ppf(0.975, n - 1)) * std / math.sqrt(n)
    return {"mean": float(sample.mean()), "ci95": ci95, "std": std, "values": list(values)}
