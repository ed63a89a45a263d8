"""The report per class of a run: precision, recall and F1, confusion matrix, calibration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import few
from nfgnn.training.metrics import MACRO_F1, Metric, parts
from nfgnn.training.split_check import class_names

BINS = 10
"""Intervals of equal width that confidences are sorted into for the calibration."""


@dataclass(frozen=True)
class PredictionCounts:
    """Counts of predictions, which several runs can add up.

    Args:
        confusion: number of nodes by true class (row) and predicted class (column), ``[C, C]``.
        bin_nodes: number of nodes whose confidence lies in each interval, ``[BINS]``. The
            confidence is the probability of the predicted class.
        bin_confidence: sum of their confidences, ``[BINS]``.
        bin_correct: number of correct predictions among them, ``[BINS]``.
    """

    confusion: np.ndarray
    bin_nodes: np.ndarray
    bin_confidence: np.ndarray
    bin_correct: np.ndarray

    @classmethod
    def of(cls, probabilities: Tensor, y: Tensor) -> "PredictionCounts":
        """Count the predictions of nodes that all have a label.

        Args:
            probabilities: ``[n, C]``.
            y: labels, ``[n]``.
        """
        num_classes = probabilities.shape[1]
        best = probabilities.double().max(1)
        confidence = best.values.numpy()
        labels = y.numpy()
        predicted = best.indices.numpy()
        pairs = np.bincount(labels * num_classes + predicted, minlength=num_classes**2)
        # The last interval includes 1.
        bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
        return cls(
            confusion=pairs.reshape(num_classes, num_classes),
            bin_nodes=np.bincount(bins, minlength=BINS),
            bin_confidence=np.bincount(bins, weights=confidence, minlength=BINS),
            bin_correct=np.bincount(bins[predicted == labels], minlength=BINS),
        )

    def __add__(self, other: "PredictionCounts") -> "PredictionCounts":
        return PredictionCounts(
            self.confusion + other.confusion,
            self.bin_nodes + other.bin_nodes,
            self.bin_confidence + other.bin_confidence,
            self.bin_correct + other.bin_correct,
        )

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: the mean of \\|accuracy - confidence\\| over the nodes."""
        gaps = np.abs(self.bin_correct - self.bin_confidence)
        return float(gaps.sum() / max(self.bin_nodes.sum(), 1))

    def predicted_class(self) -> int | None:
        """Return the class that is predicted for every node, ``None`` if there are several."""
        predicted = np.flatnonzero(self.confusion.sum(0))
        return int(predicted[0]) if len(predicted) == 1 else None

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the report as JSON values.

        A class without a node (``support`` 0) has no recall and no F1. The precision of a class
        that is never predicted is 0, as in scikit-learn.
        """
        hits = self.confusion.diagonal()
        support = self.confusion.sum(1)
        predicted = self.confusion.sum(0)
        classes = []
        for c, name in enumerate(names):
            row: dict[str, Any] = {"class": name, "precision": None, "recall": None, "f1": None}
            if support[c] > 0:
                row["precision"] = float(hits[c] / max(predicted[c], 1))
                row["recall"] = float(hits[c] / support[c])
                row["f1"] = float(2 * hits[c] / (support[c] + predicted[c]))
            classes.append({**row, "support": int(support[c]), "predicted": int(predicted[c])})
        return {
            "classes": classes,
            "confusion_matrix": self.confusion.tolist(),
            "expected_calibration_error": self.calibration_error,
            "calibration": self._calibration(),
        }

    def _calibration(self) -> list[dict[str, Any]]:
        bins = []
        for i, nodes in enumerate(self.bin_nodes.tolist()):
            filled = nodes > 0
            bins.append(
                {
                    "from": i / BINS,
                    "to": (i + 1) / BINS,
                    "nodes": nodes,
                    "confidence": float(self.bin_confidence[i] / nodes) if filled else None,
                    "accuracy": float(self.bin_correct[i] / nodes) if filled else None,
                }
            )
        return bins

    @classmethod
    def from_dict(cls, report: Mapping[str, Any]) -> "PredictionCounts":
        """Read the counts back from :meth:`to_dict`."""
        bins = report["calibration"]
        nodes = np.array([row["nodes"] for row in bins])
        confidence = np.array([row["confidence"] or 0.0 for row in bins])
        accuracy = np.array([row["accuracy"] or 0.0 for row in bins])
        return cls(
            confusion=np.array(report["confusion_matrix"]),
            bin_nodes=nodes,
            bin_confidence=nodes * confidence,
            bin_correct=np.rint(nodes * accuracy).astype(np.int64),
        )


def reported_part(data: Data) -> str:
    """Return the part that is reported per class: the test nodes, or the unobserved ones."""
    return "test" if data.get("unobserved_mask") is None else "unobserved"


def count_predictions(probabilities: Tensor, data: Data) -> PredictionCounts:
    """Count the predictions of the reported part of a split graph."""
    nodes = parts(data)[reported_part(data)]
    return PredictionCounts.of(probabilities[nodes], data.y[nodes])


def report_per_class(counts: PredictionCounts, data: Data) -> dict[str, Any]:
    """Return the report of the predictions of :func:`count_predictions` as JSON values."""
    return {"part": reported_part(data), **counts.to_dict(class_names(data))}


def never_predicted_warning(
    report: Mapping[str, Any], class_counts: Mapping[str, Sequence[int]], metric: Metric
) -> str | None:
    """Return a warning about classes that are never predicted, ``None`` if there are none.

    Classes without a node in the reported part are left out, because not to predict them is right.

    Args:
        report: of :func:`report_per_class`.
        class_counts: number of nodes of every class by part.
        metric: the metric of the run.
    """
    labelled = [sum(sizes) for sizes in zip(*class_counts.values())]
    tested = class_counts[report["part"]]
    missed = []
    for row, total, testing in zip(report["classes"], labelled, tested):
        if row["predicted"] == 0 and row["support"] > 0:
            nodes = "1 labelled node" if total == 1 else f"{total:,} labelled nodes"
            missed.append(f"{row['class']!r} ({nodes}, {testing:,} of them for testing)")
    if not missed:
        return None
    scored = [sizes for part, sizes in class_counts.items() if part != "train"]
    is_defined = all(MACRO_F1.undefined(sizes) is None for sizes in scored)
    remedy = f"label more nodes of {'this class' if len(missed) == 1 else 'these classes'}"
    if metric != MACRO_F1 and is_defined:
        remedy = f"try --metric {MACRO_F1.name}"
    return f"the model never predicts {few(missed)}: {remedy}"


def report_text(report: Mapping[str, Any], title: str, warning: str | None = None) -> str:
    """Return a report as Markdown.

    Args:
        report: of :meth:`PredictionCounts.to_dict`.
        title: the heading.
        warning: of :func:`never_predicted_warning`.
    """
    lines = [f"# {title}", ""]
    if warning is not None:
        lines += [f"Warning: {_line(warning)}.", ""]
    lines += [
        "| class | precision | recall | F1 | support |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in report["classes"]:
        cells = [_rate(row[key]) for key in ("precision", "recall", "f1")]
        lines.append(f"| {_cell(row['class'])} | {' | '.join(cells)} | {row['support']} |")
    error = report["expected_calibration_error"]
    lines += [
        "",
        f"Expected calibration error: {error:.4f} ({BINS} intervals of confidence).",
        "",
        "## Confusion matrix",
        "",
        "Rows are true classes, columns are predicted classes.",
        "",
    ]
    names = [_cell(row["class"]) for row in report["classes"]]
    lines.append(f"| | {' | '.join(names)} |")
    lines.append("|---" + "|---:" * len(names) + "|")
    for name, row in zip(names, report["confusion_matrix"]):
        lines.append(f"| {name} | {' | '.join(map(str, row))} |")
    return "\n".join(lines) + "\n"


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _cell(name: str) -> str:
    """Return a name that does not end a cell of a table."""
    return _line(name).replace("|", "\\|")
