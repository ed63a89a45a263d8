"""The figure of a report per class: confusion matrix and reliability diagram."""

from pathlib import Path
from typing import Any

import numpy as np

from nfgnn.explain.figure_style import (
    COLOURS,
    FADED,
    FEW_NODES,
    MUTED,
    canvas,
    headline,
    panels,
    percent,
    plain,
    save,
)
from nfgnn.explain.run_figure import result_title
from nfgnn.training import read_report, read_summary

_MOST_NUMBERS = 8  # classes, whose counts are written into the confusion matrix
_MOST_NAMES = 20
_LONGEST_NAME = 16
_CALIBRATED = 0.02
"""Expected calibration error that counts as none."""


def write_report_figure(run: Path) -> Path | None:
    """Draw ``report.png`` in a run folder and return its path.

    Run folders of earlier versions have no ``report.json``, and no such figure.
    """
    report = read_report(run)
    if report is None:
        return None
    path = run / "report.png"
    draw_report(report, result_title(read_summary(run)), path)
    return path


def draw_report(report: dict[str, Any], title: str, path: Path) -> None:
    """Draw the figure of a report to a file, whose extension selects the format."""
    with canvas() as plt:
        figure, axes = panels(plt, 2, width=4.2, height=3.6)
        _draw_confusion(figure, axes[0, 0], report)
        _draw_reliability(axes[0, 1], report)
        headline(figure, title)
        save(figure, path.parent, path.stem, (path.suffix.removeprefix("."),))


def _draw_confusion(figure: Any, ax: Any, report: dict[str, Any]) -> None:
    """Draw the confusion matrix; colours are shares of the true class."""
    counts = np.array(report["confusion_matrix"])
    names = [_short(row["class"]) for row in report["classes"]]
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    ax.grid(False)
    if len(names) <= _MOST_NAMES:
        ticks = range(len(names))
        ax.set_xticks(ticks, names, rotation=45 if max(map(len, names)) > 3 else 0)
        ax.set_yticks(ticks, names)
    if len(names) <= _MOST_NUMBERS:
        for (row, column), count in np.ndenumerate(counts):
            colour = "white" if shares[row, column] > 0.5 else "black"
            ax.text(column, row, f"{count:,}", ha="center", va="center", color=colour)
    ax.set(xlabel="predicted class", ylabel=f"true class, {report['part']} nodes")
    ax.set_title(_most_confused(shares, names))
    figure.colorbar(image, ax=ax, label="share of the true class")


def _most_confused(shares: np.ndarray, names: list[str]) -> str:
    """Return the largest share of a class that is predicted as another class."""
    wrong = shares * (1 - np.eye(len(names)))
    if not wrong.any():
        return "No node is classified wrongly"
    true, predicted = np.unravel_index(wrong.argmax(), wrong.shape)
    share = percent(wrong[true, predicted])
    return f"Largest confusion: {share} of '{names[true]}' as '{names[predicted]}'"


def _draw_reliability(ax: Any, report: dict[str, Any]) -> None:
    """Draw accuracy over confidence; the area of a point is its share of the nodes.

    Points of fewer than ten nodes are faded.
    """
    bins = [row for row in report["calibration"] if row["nodes"]]
    confidence = [row["confidence"] for row in bins]
    accuracy = [row["accuracy"] for row in bins]
    nodes = np.array([row["nodes"] for row in bins])
    ax.plot([0, 1], [0, 1], color=MUTED, lw=1, ls="--", label="perfectly calibrated")
    ax.plot(confidence, accuracy, color=COLOURS[0], lw=1)
    ax.scatter(
        confidence,
        accuracy,
        s=12 + 150 * nodes / nodes.sum(),
        color=COLOURS[0],
        alpha=np.where(nodes < FEW_NODES, FADED, 1.0),
    )
    gap = float(np.average(np.subtract(confidence, accuracy), weights=nodes))
    error = report["expected_calibration_error"]
    title = f"{_calibration(gap, error)}: calibration error {error:.3f}"
    lowest = min(*confidence, *accuracy)
    limits = (max(0.0, lowest - 0.05), 1.02)
    ax.set(xlabel="confidence", ylabel="accuracy", xlim=limits, ylim=limits, title=title)
    ax.legend(loc="best")


def _calibration(gap: float, error: float) -> str:
    """Describe the mean of confidence minus accuracy, and of its absolute value per bin."""
    if error < _CALIBRATED:
        return "Well calibrated"
    if abs(gap) < error / 2:
        return "Miscalibrated"
    return "Overconfident" if gap > 0 else "Underconfident"


def _short(name: str) -> str:
    text = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    return plain(text)
