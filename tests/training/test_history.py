"""Learning curves of a run."""

import csv
import math
from pathlib import Path

import pytest

from nfgnn.errors import DivergedError
from nfgnn.training import METRICS, Criterion, History


def test_the_best_epoch_is_the_first_of_least_loss() -> None:
    assert History(val_loss=[3.0, 1.0, 2.0, 1.0]).best_epoch == 1


def test_a_run_without_a_finite_loss_has_diverged() -> None:
    History(val_loss=[math.nan, 1.0, math.inf]).raise_if_diverged()
    with pytest.raises(DivergedError, match="reduce the learning rates"):
        History(val_loss=[math.nan, math.inf]).raise_if_diverged()


def test_the_file_has_one_row_per_epoch(tmp_path: Path) -> None:
    history = History([0.5, 0.25], [0.75, 0.125], [0.1, 0.2])
    history.write(tmp_path / "history.csv")
    with (tmp_path / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["0", "1"]
    assert [float(row["val_loss"]) for row in rows] == history.val_loss
    assert [float(row["val_accuracy"]) for row in rows] == history.val_accuracy


def test_curves_are_read_as_they_were_written(tmp_path: Path) -> None:
    for criterion in (Criterion(), Criterion(METRICS["roc_auc"], by_metric=True)):
        history = History([1.0, 0.5], [0.9, 0.1 + 0.2], [0.4, 0.6], 2.5, criterion=criterion)
        if criterion.has_curve:
            history.val_metric = [0.7, 0.8]
        history.write(tmp_path / "history.csv")
        assert History.read(tmp_path / "history.csv", criterion, 2.5) == history
