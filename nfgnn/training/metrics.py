"""Scores of predictions, and the summary of many runs."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data


def accuracy(probabilities: Tensor, y: Tensor) -> float:
    """Share of nodes whose most probable class is their label."""
    return float((probabilities.argmax(-1) == y).double().mean())


def roc_auc(probabilities: Tensor, y: Tensor) -> float:
    """Area under the ROC curve of a two-class problem."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y.cpu().numpy(), probabilities[:, 1].cpu().numpy()))


def scores(probabilities: Tensor, data: Data) -> dict[str, float]:
    """Accuracy (and ROC-AUC where the graph asks for it) on every mask: ``train_accuracy``, ``val_accuracy``,
    ``test_accuracy``; under the inductive protocol ``observed_accuracy`` and ``unobserved_accuracy`` in its place."""
    inductive = data.get("unobserved_mask") is not None
    parts = {
        "train": "train_mask",
        "val": "val_mask",
        "observed" if inductive else "test": "test_mask",
    }
    parts |= {"unobserved": "unobserved_mask"} if inductive else {}
    found = {}
    for name, mask in parts.items():
        nodes = data[mask] & (data.y >= 0)
        if bool(nodes.any()):
            found[f"{name}_accuracy"] = accuracy(probabilities[nodes], data.y[nodes])
            if data.get("metric") == "roc_auc":
                found[f"{name}_roc_auc"] = roc_auc(probabilities[nodes], data.y[nodes])
    return found


def summarise(values: Sequence[float]) -> dict[str, Any]:
    """Mean, half-width of the 95 % confidence interval of the mean (Student's t), standard deviation, every value."""
    from scipy.stats import t

    sample = torch.tensor(values, dtype=torch.float64)
    n = sample.numel()
    std = float(sample.std()) if n > 1 else None
    ci95 = float(t.ppf(0.975, n - 1)) * std / math.sqrt(n) if std is not None else None
    return {"mean": float(sample.mean()), "ci95": ci95, "std": std, "values": list(values)}
