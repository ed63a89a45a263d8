"""Figures of runs and reports that are written without being drawn.

To draw them takes ten times as long as a short training.
"""

from pathlib import Path

import pytest

from nfgnn.explain import report_figure, run_figure
from nfgnn.files import atomic_write


def write_empty_figures(patch: pytest.MonkeyPatch) -> None:
    """Make commands write empty files. They still read what the figures show."""
    patch.setattr(run_figure, "draw_run", _write_empty_figure)
    patch.setattr(report_figure, "draw_report", _write_empty_figure)


def _write_empty_figure(*content: object) -> None:
    path = content[-1]
    assert isinstance(path, Path)
    atomic_write(path, b"")
