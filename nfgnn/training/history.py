"""The learning curves of a run."""

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nfgnn.errors import DivergedError


@dataclass
class History:
    """Losses and accuracies of every epoch."""

    train_loss: list[float] = field(default_factory=list)
    val_loss: list[float] = field(default_factory=list)
    val_accuracy: list[float] = field(default_factory=list)
    seconds: float = 0.0
    loading: dict[str, float] = field(default_factory=dict)
    """For row batches: ``rows_per_second``, and the share of the time ``waited`` for rows."""
    restarts: int = 0
    """How many trainings before this one were dead: see :mod:`nfgnn.training.dead_runs`."""
    dead: bool = False
    """Whether the training never rose above chance."""

    @property
    def epochs(self) -> int:
        """Number of epochs that were trained and evaluated."""
        return len(self.val_loss)

    @property
    def best_epoch(self) -> int:
        """The first epoch of least validation loss, counted from 0."""
        return min(range(self.epochs), key=self.val_loss.__getitem__)

    @property
    def diverged(self) -> bool:
        """Whether no epoch has a finite validation loss."""
        return not any(map(math.isfinite, self.val_loss))

    def raise_if_diverged(self) -> None:
        """Raise :class:`~nfgnn.errors.DivergedError` if no epoch has a finite loss."""
        if self.diverged:
            raise DivergedError(
                "the validation loss was never a number: lower the learning rates (lr, filter_lr)"
            )

    def write(self, path: Path) -> None:
        """Write one row per epoch, as CSV."""
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["epoch", "train_loss", "val_loss", "val_accuracy"])
            curves = zip(range(self.epochs), self.train_loss, self.val_loss, self.val_accuracy)
            writer.writerows(curves)


OnEpoch = Callable[[History], None]
"""A callback: called with the history so far after an epoch. Batched runs on a GPU call it
every few epochs, with the history of the run that has trained longest."""
