"""Metrics of predictions, and the mean and confidence interval of many runs.

:data:`METRICS` has one :class:`Metric` per name. A metric computes with tensors of fixed shapes on
the device of the predictions, so training can select the epoch by it without waiting for a result.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.errors import unknown_name

AUTO = "auto"
"""The setting, and the ``data.metric`` of a graph without an official metric."""
MINORITY_SHARE = 0.3
"""Own graphs with two classes and a smaller minority than this are scored by ROC-AUC."""

_Value = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Metric:
    """A score of predicted class probabilities.

    Args:
        name: as in settings, records and files.
        title: as in tables and messages.
        greater_is_better: ``False`` for a loss.
        value: computes the metric of a part of the nodes from probabilities ``[..., n, C]``,
            labels ``[..., n]`` and weights ``[..., n]``, which are 1 for nodes of the part and 0
            for others. The leading dimensions count runs.
        needs_every_class: whether the metric is only defined if every class has a node.
        uses: what decides the value: the predicted ``"class"`` of the nodes, their ``"ranking"`` by
            the probability of a class, or the ``"probabilities"`` themselves.
    """

    name: str
    title: str
    greater_is_better: bool
    value: _Value
    needs_every_class: bool = False
    uses: str = "probabilities"

    def compute(self, probabilities: Tensor, y: Tensor, num_classes: int) -> float:
        """Return the metric of nodes that all have a label; NaN where it is undefined.

        Args:
            probabilities: ``[n, C]``.
            y: labels, ``[n]``.
            num_classes: number of classes of the graph, C.
        """
        if self.undefined(count_classes(y, num_classes)) is not None:
            return math.nan
        weight = torch.ones(y.shape, dtype=torch.float64, device=y.device)
        return float(self.value(probabilities, y, weight))

    def undefined(self, class_counts: Sequence[int]) -> str | None:
        """Return why the metric is undefined on a part; ``None`` if it is defined.

        Args:
            class_counts: number of nodes of every class in the part.
        """
        if sum(class_counts) == 0:
            return "it has no labelled node"
        missing = [label for label, count in enumerate(class_counts) if count == 0]
        if self.needs_every_class and missing:
            listed = ", ".join(map(str, missing[:10])) + ("" if len(missing) <= 10 else ", …")
            classes = "class" if len(missing) == 1 else "classes"
            return f"{self.title} needs nodes of every class, and it has none of {classes} {listed}"
        return None

    def is_better(self, value: float, other: float) -> bool:
        """Whether one value of this metric is better than another."""
        return value > other if self.greater_is_better else value < other

    def shown(self, value: float, digits: int = 2) -> str:
        """Return a value as text: a percentage, or the plain number for a loss."""
        if self.greater_is_better:
            return f"{100 * value:.{digits}f} %"
        return f"{value:.{digits + 2}f}"

    def shown_interval(self, score: Mapping[str, Any], digits: int = 2) -> str:
        """Return the mean of :func:`summarise` with its confidence interval as text."""
        scale = 100 if self.greater_is_better else 1
        digits = digits if self.greater_is_better else digits + 2
        text = f"{scale * score['mean']:.{digits}f}"
        if score["ci95"] is not None:
            text += f" ± {scale * score['ci95']:.{digits}f}"
        return text + (" %" if self.greater_is_better else "")


def count_classes(y: Tensor, num_classes: int) -> list[int]:
    """Return the number of nodes of every class. Unlabelled nodes (-1) do not count."""
    counts: list[int] = torch.bincount(y[y >= 0], minlength=num_classes).tolist()
    return counts


def _accuracy(probabilities: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    correct = probabilities.argmax(-1) == y
    return (weight * correct).sum(-1) / weight.sum(-1)


def _class_sums(classes: Tensor, weight: Tensor, num_classes: int) -> Tensor:
    """Return the sum of the weights of every class, ``[..., C]``."""
    sums = weight.new_zeros((*weight.shape[:-1], num_classes))
    return sums.scatter_add(-1, classes, weight)


def _balanced_accuracy(probabilities: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Mean recall of the classes."""
    num_classes = probabilities.shape[-1]
    correct = weight * (probabilities.argmax(-1) == y)
    recall = _class_sums(y, correct, num_classes) / _class_sums(y, weight, num_classes)
    return recall.mean(-1)


def _macro_f1(probabilities: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Mean over the classes of 2 TP / (2 TP + FP + FN)."""
    num_classes = probabilities.shape[-1]
    predicted = probabilities.argmax(-1)
    hits = _class_sums(y, weight * (predicted == y), num_classes)
    labelled = _class_sums(y, weight, num_classes)
    return (2 * hits / (labelled + _class_sums(predicted, weight, num_classes))).mean(-1)


def _ranked(probabilities: Tensor, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return one binary problem per class, with the nodes sorted by their scores.

    Two classes are one problem, whose positive class is 1.

    Returns:
        Scores in ascending order, weights of the nodes and weights of the positive nodes in the
        same order, ``[..., problems, n]`` each.
    """
    first = 1 if probabilities.shape[-1] == 2 else 0
    # A node outside of the part may have NaN, which must neither be sorted nor summed.
    inside = torch.where(weight[..., None] > 0, probabilities, 0.0)
    scores = inside[..., first:].transpose(-1, -2).contiguous()
    classes = torch.arange(first, probabilities.shape[-1], device=y.device)
    positive = weight[..., None, :] * (y[..., None, :] == classes[:, None])
    everyone = weight[..., None, :].expand_as(positive)
    ranked, order = scores.sort(-1)
    return ranked, everyone.gather(-1, order), positive.gather(-1, order)


def _cumulated(weight: Tensor) -> Tensor:
    """Return the sums of the first 0, 1, …, n weights, ``[..., n + 1]``."""
    return torch.nn.functional.pad(weight.cumsum(-1), (1, 0))


def _roc_auc(probabilities: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Probability that a positive node has a higher score than a negative one; ties count half."""
    ranked, everyone, positive = _ranked(probabilities, y, weight)
    negative = everyone - positive
    negatives = _cumulated(negative)
    below = negatives.gather(-1, torch.searchsorted(ranked, ranked))
    not_above = negatives.gather(-1, torch.searchsorted(ranked, ranked, right=True))
    pairs = (positive * (below + not_above) / 2).sum(-1)
    return (pairs / (positive.sum(-1) * negative.sum(-1))).mean(-1)


def _average_precision(probabilities: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Mean over the positive nodes of the precision at their score as the threshold."""
    ranked, everyone, positive = _ranked(probabilities, y, weight)
    lower = torch.searchsorted(ranked, ranked)
    hits = positive.sum(-1, keepdim=True) - _cumulated(positive).gather(-1, lower)
    found = everyone.sum(-1, keepdim=True) - _cumulated(everyone).gather(-1, lower)
    precision = torch.where(positive > 0, hits / found, 0.0)
    return ((positive * precision).sum(-1) / positive.sum(-1)).mean(-1)


def _log_loss(probabilities: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Mean negative logarithm of the probability of the label, clipped as in scikit-learn."""
    eps = torch.finfo(probabilities.dtype).eps
    own = probabilities.gather(-1, y[..., None])[..., 0].double().clamp(eps, 1 - eps)
    losses = torch.where(weight > 0, -weight * own.log(), 0.0)
    return losses.sum(-1) / weight.sum(-1)


ACCURACY = Metric("accuracy", "accuracy", True, _accuracy, uses="class")
ROC_AUC = Metric("roc_auc", "ROC-AUC", True, _roc_auc, needs_every_class=True, uses="ranking")

BALANCED_ACCURACY = Metric(
    "balanced_accuracy",
    "balanced accuracy",
    True,
    _balanced_accuracy,
    needs_every_class=True,
    uses="class",
)
MACRO_F1 = Metric("macro_f1", "macro-F1", True, _macro_f1, needs_every_class=True, uses="class")
AVERAGE_PRECISION = Metric(
    "average_precision",
    "average precision",
    True,
    _average_precision,
    needs_every_class=True,
    uses="ranking",
)
LOG_LOSS = Metric("log_loss", "log loss", False, _log_loss)

METRICS: dict[str, Metric] = {
    "accuracy": ACCURACY,
    "balanced_accuracy": BALANCED_ACCURACY,
    "macro_f1": MACRO_F1,
    "roc_auc": ROC_AUC,
    "average_precision": AVERAGE_PRECISION,
    "log_loss": LOG_LOSS,
}
"""Every metric by its name."""


def find_metric(name: str) -> Metric:
    """Return the metric of a name, or raise a :class:`~nfgnn.errors.UserError`."""
    if name not in METRICS:
        raise unknown_name("metric", name, METRICS)
    return METRICS[name]


def resolve_metric(setting: str, data: Data) -> Metric:
    """Return the metric that a graph is scored by.

    ``"auto"`` is the official metric of a registered graph (``data.metric``). An own graph has
    ROC-AUC if it has two classes and fewer than 30 % of its labelled nodes are of one of them,
    else accuracy.

    Args:
        setting: name of a metric, or ``"auto"``.
        data: the whole graph, not a part of it.
    """
    if setting != AUTO:
        return find_metric(setting)
    official = data.get("metric") or AUTO
    if official != AUTO:
        return find_metric(official)
    counts = count_classes(data.y, data.get("num_classes") or 0)
    if len(counts) == 2 and min(counts) < MINORITY_SHARE * sum(counts):
        return ROC_AUC
    return ACCURACY


def accuracy(probabilities: Tensor, y: Tensor) -> float:
    """Return the share of nodes whose most probable class is their label."""
    return float((probabilities.argmax(-1) == y).double().mean())


def parts(data: Data) -> dict[str, Tensor]:
    """Return the labelled nodes of every part of a split graph, as masks.

    The parts are ``train``, ``val`` and ``test``. Under the inductive protocol ``observed`` and
    ``unobserved`` take the place of ``test``. A part without labelled nodes is left out.
    """
    masks = {"train": "train_mask", "val": "val_mask"}
    if data.get("unobserved_mask") is None:
        masks["test"] = "test_mask"
    else:
        masks["observed"] = "test_mask"
        masks["unobserved"] = "unobserved_mask"
    labelled = data.y >= 0
    found = {part: data[mask] & labelled for part, mask in masks.items()}
    return {part: nodes for part, nodes in found.items() if bool(nodes.any())}


def scores(probabilities: Tensor, data: Data, metric: Metric | None = None) -> dict[str, float]:
    """Return the scores on every part: ``train_accuracy``, ``val_accuracy``, ``test_accuracy``.

    If the metric is not accuracy, its values are added: ``test_roc_auc`` and so on. It has no
    value for a part on which it is undefined.

    Args:
        probabilities: of all nodes.
        data: a graph with masks.
        metric: the metric of the graph, by default :func:`resolve_metric`.
    """
    metric = metric or resolve_metric(AUTO, data)
    found = {}
    for part, nodes in parts(data).items():
        y = data.y[nodes]
        found[f"{part}_accuracy"] = accuracy(probabilities[nodes], y)
        if metric != ACCURACY:
            value = metric.compute(probabilities[nodes], y, data.num_classes)
            if not math.isnan(value):
                found[f"{part}_{metric.name}"] = value
    return found


def summarise(values: Sequence[float]) -> dict[str, Any]:
    """Return mean, 95 % confidence interval, standard deviation and all values.

    ``ci95`` is the half-width of the interval of the mean (Student's t). It is ``None`` for a
    single value, and so is ``std``.
    """
    from scipy.special import stdtrit  # scipy.stats takes half a second to import

    sample = torch.tensor(values, dtype=torch.float64)
    n = sample.numel()
    std = None
    ci95 = None
    if n > 1:
        std = float(sample.std())
        ci95 = float(stdtrit(n - 1, 0.975)) * std / math.sqrt(n)
    return {"mean": float(sample.mean()), "ci95": ci95, "std": std, "values": list(values)}
