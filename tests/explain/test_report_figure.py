"""The figure of a report per class shows its numbers."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.explorer_runs import awkward_graph, train_run

from nfgnn.explain import canvas, panels, write_report_figure
from nfgnn.explain.report_figure import _calibration, _draw_confusion, _draw_reliability
from nfgnn.training import read_report

pytestmark = pytest.mark.figures


def test_both_panels_have_the_numbers_of_the_report(tmp_path: Path) -> None:
    run = train_run(tmp_path / "run", "MLP", awkward_graph(), seeds=(0, 1))
    report = read_report(run)
    assert report is not None
    with canvas() as plt:
        figure, axes = panels(plt, 2)
        _draw_confusion(figure, axes[0, 0], report)
        _draw_reliability(axes[0, 1], report)
        texts = [text.get_text() for text in axes[0, 0].texts]
        shares = axes[0, 0].images[0].get_array()
        confidence, accuracy = axes[0, 1].lines[1].get_data()
        title = axes[0, 1].get_title(loc="left")
        largest = axes[0, 0].get_title(loc="left")
    counts = np.array(report["confusion_matrix"])
    assert texts == [str(count) for count in counts.flatten()]
    np.testing.assert_allclose(shares, counts / counts.sum(1, keepdims=True))
    filled = [row for row in report["calibration"] if row["nodes"]]
    np.testing.assert_allclose(confidence, [row["confidence"] for row in filled])
    np.testing.assert_allclose(accuracy, [row["accuracy"] for row in filled])
    assert f"{report['expected_calibration_error']:.3f}" in title
    wrong = counts / counts.sum(1, keepdims=True)
    np.fill_diagonal(wrong, 0)
    assert f"{100 * wrong.max():.0f} %" in largest


def test_the_file_is_written_beside_the_report(tmp_path: Path) -> None:
    run = train_run(tmp_path / "run", "MLP", awkward_graph())
    path = write_report_figure(run)
    assert path == run / "report.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    older = tmp_path / "older"
    shutil.copytree(run, older)
    (older / "report.json").unlink()
    assert write_report_figure(older) is None


def test_title_names_the_direction_of_the_error() -> None:
    assert _calibration(0.01, 0.01) == "Well calibrated"
    assert _calibration(0.1, 0.1) == "Overconfident"
    assert _calibration(-0.1, 0.12) == "Underconfident"
    assert _calibration(0.01, 0.05) == "Miscalibrated"
