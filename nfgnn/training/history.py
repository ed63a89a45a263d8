"""What a run leaves behind: losses and accuracies, epoch by epoch."""

import csv
import math
from dataclasses import dataclass, field
from pathlib import Path

from nfgnn.errors import UserError


@dataclass
class History:
    """What was seen in every epoch, and which epoch's weights were kept."""

    train_loss: list[float] = field(default_factory=list)
    val_loss: list[float] = field(default_factory=list)
    val_accuracy: list[float] = field(default_factory=list)
    seconds: float = 0.0
    loading: dict[str, float] = field(default_factory=dict)
    """Where rows were read in batches: ``rows_per_second``, and the share ``waited`` of the time."""

    @property
    def epochs(self) -> int:
        return len(self.val_loss)

    @property
    def best_epoch(self) -> int:
        """The epoch of least validation loss, the first one where there are several; counted from 0."""
        return min(range(self.epochs), key=self.val_loss.__getitem__)

    @property
    def diverged(self) -> bool:
        """Whether no epoch has a validation loss that is a number."""
        return not any(map(math.isfinite, self.val_loss))

    def check(self) -> None:
        """Tell the user where training came to nothing."""
        if self.diverged:
            raise UserError(
                "the validation loss was never a number: lower the learning rates (lr, filter_lr)"
            )

    def should_stop(self, patience: int) -> bool:
        """Whether the newest validation loss exceeds the mean of the ``patience`` values before it."""
        if self.epochs <= patience:
            return False
        return self.val_loss[-1] > sum(self.val_loss[-patience - 1 : -1]) / patience

    def write(self, path: Path) -> None:
        """One row per epoch, as CSV."""
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["epoch", "train_loss", "val_loss", "val_accuracy"])
            writer.writerows(
                zip(range(self.epochs), self.train_loss, self.val_loss, self.val_accuracy)
            )
