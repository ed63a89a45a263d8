"""The report per class equals scikit-learn."""

import json

import numpy as np
import pytest
import torch
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from torch_geometric.data import Data

from nfgnn.training.class_report import (
    BINS,
    PredictionCounts,
    count_predictions,
    never_predicted_warning,
    report_text,
)
from nfgnn.training.metrics import METRICS


def predictions(num_classes: int, nodes: int = 400, seed: int = 0) -> tuple:
    """Return probabilities and labels; the last class is rare."""
    generator = torch.Generator().manual_seed(seed)
    share = torch.ones(num_classes)
    share[-1] = 0.05
    y = torch.multinomial(share, nodes, replacement=True, generator=generator)
    logits = 2 * torch.randn(nodes, num_classes, generator=generator)
    logits[torch.arange(nodes), y] += 1.5
    return logits.softmax(1), y


@pytest.mark.parametrize("num_classes", [2, 3, 12])
def test_rates_and_confusion_equal_scikit_learn(num_classes: int) -> None:
    probabilities, y = predictions(num_classes)
    names = [f"class {c}" for c in range(num_classes)]
    report = PredictionCounts.of(probabilities, y).to_dict(names)
    labels = range(num_classes)
    predicted = probabilities.argmax(1)
    expected = precision_recall_fscore_support(y, predicted, labels=labels, zero_division=0)
    for key, values in zip(("precision", "recall", "f1", "support"), expected):
        np.testing.assert_allclose([row[key] for row in report["classes"]], values)
    np.testing.assert_array_equal(
        report["confusion_matrix"], confusion_matrix(y, predicted, labels=labels)
    )


def test_a_class_without_nodes_has_no_rates_and_one_never_predicted_has_precision_zero() -> None:
    probabilities = torch.tensor([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0]])
    counts = PredictionCounts.of(probabilities, torch.tensor([0, 1]))
    first, second, absent = counts.to_dict(["a", "b", "c"])["classes"]
    assert (first["precision"], first["recall"]) == (0.5, 1.0)
    assert (second["precision"], second["recall"], second["f1"]) == (0.0, 0.0, 0.0)
    assert (absent["precision"], absent["recall"], absent["f1"], absent["support"]) == (
        None,
        None,
        None,
        0,
    )
    assert counts.predicted_class() == 0


def test_calibration_equals_scikit_learn_and_the_definition() -> None:
    probabilities, y = predictions(4, nodes=1000)
    report = PredictionCounts.of(probabilities, y).to_dict(list("abcd"))
    confidence, predicted = (values.numpy() for values in probabilities.double().max(1))
    correct = predicted == y.numpy()
    accuracy, mean_confidence = calibration_curve(correct, confidence, n_bins=BINS)
    filled = [row for row in report["calibration"] if row["nodes"]]
    np.testing.assert_allclose([row["accuracy"] for row in filled], accuracy)
    np.testing.assert_allclose([row["confidence"] for row in filled], mean_confidence)
    error = 0.0
    for low in np.arange(BINS) / BINS:
        inside = (confidence >= low) & (confidence < low + 1 / BINS)
        if inside.any():
            gap = abs(correct[inside].mean() - confidence[inside].mean())
            error += inside.mean() * gap
    assert report["expected_calibration_error"] == pytest.approx(error)


def test_counts_add_up_and_survive_json() -> None:
    one = PredictionCounts.of(*predictions(3, seed=1))
    other = PredictionCounts.of(*predictions(3, seed=2))
    together = PredictionCounts.of(
        *(torch.cat(pair) for pair in zip(predictions(3, seed=1), predictions(3, seed=2)))
    )
    total = one + PredictionCounts.from_dict(json.loads(json.dumps(other.to_dict(list("abc")))))
    np.testing.assert_array_equal(total.confusion, together.confusion)
    np.testing.assert_array_equal(total.bin_correct, together.bin_correct)
    assert total.calibration_error == pytest.approx(together.calibration_error)


def test_the_unobserved_nodes_are_reported_under_the_inductive_protocol() -> None:
    probabilities, y = predictions(2, nodes=6)
    y[0] = -1
    masks = torch.eye(3, dtype=torch.bool).repeat_interleave(2, 0)
    data = Data(y=y, num_nodes=6, train_mask=masks[:, 0], val_mask=masks[:, 1])
    data.test_mask = masks[:, 2]
    assert count_predictions(probabilities, data).confusion.sum() == 2
    data.unobserved_mask = masks[:, 0]  # one of its nodes has no label
    assert count_predictions(probabilities, data).confusion.sum() == 1


def test_names_cannot_break_the_table() -> None:
    probabilities, y = predictions(2)
    report = PredictionCounts.of(probabilities, y).to_dict(["a|b", "two\nlines"])
    rows = report_text(report, "title").splitlines()
    cells = [line.replace("\\|", "").count("|") for line in rows if line.startswith("|")]
    assert cells == [6] * 4 + [4] * 4


def never_predicted(metric: str = "accuracy", counts: dict | None = None) -> str | None:
    """Return the warning about predictions of ``a`` and ``b`` for a graph with four classes."""
    probabilities = torch.tensor([[0.9, 0.1, 0.0, 0.0], [0.2, 0.8, 0.0, 0.0], [0.6, 0.4, 0.0, 0.0]])
    report = PredictionCounts.of(probabilities, torch.tensor([0, 1, 2])).to_dict(list("abcd"))
    if counts is None:
        counts = {"train": [9, 9, 5, 1], "val": [3, 3, 2, 1], "test": [1, 1, 1, 1]}
    return never_predicted_warning({"part": "test", **report}, counts, METRICS[metric])


def test_classes_that_are_never_predicted_are_named_with_their_nodes() -> None:
    expected = "the model never predicts 'c' (8 labelled nodes, 1 of them for testing): "
    assert never_predicted() == expected + "try --metric macro_f1"
    # Another metric helps neither where it is used already nor where it is undefined.
    assert never_predicted("macro_f1") == expected + "label more nodes of this class"
    counts = {"train": [9, 9, 6, 1], "val": [3, 3, 1, 1], "test": [1, 1, 1, 0]}
    assert never_predicted(counts=counts) == expected + "label more nodes of this class"


def test_no_warning_where_all_classes_are_predicted() -> None:
    probabilities = torch.eye(3)
    report = PredictionCounts.of(probabilities, torch.arange(3)).to_dict(list("abc"))
    counts = {"train": [9, 9, 5], "val": [3, 3, 2], "test": [1, 1, 1]}
    warning = never_predicted_warning({"part": "test", **report}, counts, METRICS["accuracy"])
    assert warning is None
    assert "Warning" not in report_text(report, "title", warning)
    lines = report_text(report, "title", "one\ntwo").splitlines()
    assert lines[2] == "Warning: one two."
