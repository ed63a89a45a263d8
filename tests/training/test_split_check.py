"""Splits that a metric cannot score are refused; constant predictions as a reference."""

import numpy as np
import pytest
import torch
from sklearn import metrics
from torch_geometric.data import Data

from nfgnn.data import split
from nfgnn.errors import UserError
from nfgnn.training import METRICS, find_metric
from nfgnn.training.split_check import (
    checked_split,
    class_counts,
    majority_scores,
    missing_classes,
)


def graph(*sizes: int, unlabelled: int = 0) -> Data:
    """Return labels of classes of these sizes, in random order."""
    y = torch.cat([torch.full((size,), c) for c, size in enumerate(sizes)])
    y = torch.cat([y, torch.full((unlabelled,), -1)])
    y = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(0))]
    names = [f"class {c}" for c in range(len(sizes))]
    return Data(y=y, num_nodes=len(y), class_names=names, num_classes=len(sizes), name="own")


def test_the_paper_s_split_of_a_rare_class_is_refused_with_the_protocol_to_use() -> None:
    data = graph(970, 30)
    with pytest.raises(
        UserError,
        match=r"'full' \(seed 0\) validation and test have no node of class class 1, so ROC-AUC is "
        r"not defined: use the protocol 'stratified'",
    ):
        checked_split(data, "full", 0, find_metric("roc_auc"))
    assert checked_split(data, "full", 0, find_metric("accuracy")).protocol == "full"
    assert checked_split(data, "stratified", 0, find_metric("roc_auc")).protocol == "stratified"


def test_the_split_of_the_file_is_recommended_first() -> None:
    data = split(graph(970, 30), "stratified", 7)
    with pytest.raises(UserError, match="use the protocol 'public'"):
        checked_split(data, "full", 0, find_metric("roc_auc"))


def test_too_small_classes_are_named() -> None:
    with pytest.raises(UserError, match="label more nodes of class class 2, or choose the metric"):
        checked_split(graph(50, 50, 2), "stratified", 0, find_metric("macro_f1"))


def test_a_split_without_test_nodes_is_refused() -> None:
    data = split(graph(50, 50), "stratified", 0)
    data.test_mask = torch.zeros_like(data.test_mask)
    with pytest.raises(UserError, match=r"test has no labelled node.*use the protocol 'strat"):
        checked_split(data, "public", 0, find_metric("accuracy"))


def test_class_counts_and_missing_classes() -> None:
    data = split(graph(20, 10, 2, unlabelled=5), "stratified", 0)
    counts = class_counts(data)
    assert counts == {"train": [12, 6, 2], "val": [4, 2, 0], "test": [4, 2, 0]}
    assert missing_classes(counts, data.class_names) == {"val": ["class 2"], "test": ["class 2"]}
    hidden = split(graph(200, 200), "inductive", 0)
    assert list(class_counts(hidden)) == ["train", "val", "observed", "unobserved"]


ORACLES = {
    "accuracy": lambda y, p: metrics.accuracy_score(y, p.argmax(1)),
    "balanced_accuracy": lambda y, p: metrics.balanced_accuracy_score(y, p.argmax(1)),
    "macro_f1": lambda y, p: metrics.f1_score(y, p.argmax(1), average="macro"),
    "roc_auc": lambda y, p: 0.5,
    "average_precision": lambda y, p: np.mean(y == 1),
    "log_loss": lambda y, p: metrics.log_loss(y, p),
}


@pytest.mark.parametrize("name", METRICS)
def test_the_majority_is_a_constant_prediction(name: str) -> None:
    data = split(graph(90, 30, unlabelled=9), "stratified", 0)
    found = majority_scores(data, find_metric(name))
    y = data.y[data.test_mask].numpy()
    constant = np.tile(np.bincount(y) / len(y), (len(y), 1))
    assert found[f"test_{name}"] == pytest.approx(ORACLES[name](y, constant))
    assert found["test_accuracy"] == pytest.approx(0.75)
