"""Scores of predictions, and the summary of many runs."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def accuracy(probabilities: Tensor, y: Tensor) -> float:
    """Share of nodes whose most probable class is their label."""
    return float((probabilities.argmax(-1) == y).double().mean())


def roc_auc(probabilities: Tensor, y: Tensor) -> float:
    """Area under the ROC curve of a two-class problem."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y.cpu().numpy(), probabilities[:, 1].cpu().numpy()))


def summarise(values: Sequence[float]) -> dict[str, Any]:
    """Mean, half-width of the 95 % confidence interval of the mean (Student's t), standard deviation, every value."""
    from scipy.stats import t

    sample = torch.tensor(values, dtype=torch.float64)
    n = sample.numel()
    std = float(sample.std()) if n > 1 else None
    ci95 = float(t.ppf(0.975, n - 1)) * std / math.sqrt(n) if std is not None else None
    return {"mean": float(sample.mean()), "ci95": ci95, "std": std, "values": list(values)}
