"""The learning curves of a run."""

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nfgnn.errors import DivergedError
from nfgnn.training.criterion import Criterion


@dataclass
class History:
    """Losses and scores of every epoch."""

    train_loss: list[float] = field(default_factory=list)
    val_loss: list[float] = field(default_factory=list)
    val_accuracy: list[float] = field(default_factory=list)
    seconds: float = 0.0
    loading: dict[str, float] = field(default_factory=dict)
    """For row batches: ``rows_per_second``, and the share of the time ``waited`` for rows.
    For parts of a graph: ``edges_kept``, the expected share of the edges in an epoch."""
    restarts: int = 0
    """How many trainings before this one were dead: see :mod:`nfgnn.training.dead_runs`."""
    dead: bool = False
    """Whether the training never rose above chance."""
    val_metric: list[float] = field(default_factory=list)
    """The metric on the validation nodes, if it is not accuracy."""
    criterion: Criterion = field(default_factory=Criterion)
    """What selects the epoch."""

    @property
    def epochs(self) -> int:
        """Number of epochs that were trained and evaluated."""
        return len(self.val_loss)

    @property
    def scores(self) -> list[float]:
        """The metric on the validation nodes in every epoch."""
        return self.val_metric if self.criterion.has_curve else self.val_accuracy

    def costs(self) -> list[float]:
        """Return what the criterion minimises: by default the validation losses."""
        if not self.criterion.by_metric:
            return list(self.val_loss)
        return [self.criterion.cost(*epoch) for epoch in zip(self.val_loss, self.scores)]

    @property
    def best_epoch(self) -> int:
        """The first epoch of least cost, by default least validation loss, counted from 0."""
        ranks = list(zip(self.costs(), self.val_loss))
        # No comparison with NaN is true, so min() would return an epoch that was never kept.
        comparable = [epoch for epoch, (cost, _) in enumerate(ranks) if not math.isnan(cost)]
        return min(comparable or [0], key=ranks.__getitem__)

    @property
    def diverged(self) -> bool:
        """Whether no epoch has a finite validation loss."""
        return not any(map(math.isfinite, self.val_loss))

    def raise_if_diverged(self) -> None:
        """Raise :class:`~nfgnn.errors.DivergedError` if no epoch has a finite loss."""
        if self.diverged:
            raise DivergedError(
                "the validation loss is not finite in any epoch: reduce the learning rates (lr, "
                "filter_lr) or the weight decay (weight_decay, filter_weight_decay)"
            )

    def write(self, path: Path) -> None:
        """Write one row per epoch, as CSV."""
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            curves = {
                "epoch": range(self.epochs),
                "train_loss": self.train_loss,
                "val_loss": self.val_loss,
                "val_accuracy": self.val_accuracy,
            }
            if self.criterion.has_curve:
                curves[f"val_{self.criterion.metric.name}"] = self.val_metric
            writer.writerow(curves)
            writer.writerows(zip(*curves.values()))

    @classmethod
    def read(cls, path: Path, criterion: Criterion, seconds: float) -> "History":
        """Read what :meth:`write` has written.

        Args:
            path: the file.
            criterion: what selected the epoch.
            seconds: time of the training.
        """
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))

        def curve(name: str) -> list[float]:
            return [float(row[name]) for row in rows]

        history = cls(curve("train_loss"), curve("val_loss"), curve("val_accuracy"), seconds)
        history.criterion = criterion
        if criterion.has_curve:
            history.val_metric = curve(f"val_{criterion.metric.name}")
        return history


OnEpoch = Callable[[History], None]
"""A callback: called with the history so far after an epoch. Batched runs on a GPU call it
every few epochs, with the history of the run that has trained longest."""
