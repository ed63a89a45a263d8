"""Successive halving: few epochs for all configurations, more for the better half, and so on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nfgnn.training import RunConfig

FIRST_EPOCHS = 20
"""Epochs of the first round."""
GROWTH = 4
"""Factor between the epochs of two rounds."""


@dataclass(frozen=True)
class Rung:
    """The next round: how many of the ranked configurations are trained, and how long."""

    keep: int
    epochs: int | None
    """``None`` trains to the end."""


def next_rung(seconds: Sequence[float], epochs: int, full_epochs: int, available: float) -> Rung:
    """Choose the next round.

    All configurations are trained to the end if there is time for it. Otherwise the better half is
    left, trained to the end if there is time for that, or else for more epochs.

    Args:
        seconds: expected time to train each configuration to the end, the best configuration first.
        epochs: of the last round.
        full_epochs: largest number of epochs of a training.
        available: seconds that are left, summed over the processes.
    """
    if sum(seconds) <= available:
        return Rung(len(seconds), None)
    half = math.ceil(len(seconds) / 2)
    longer = epochs * GROWTH
    if sum(seconds[:half]) <= available or half <= 2 or longer >= full_epochs:
        return Rung(half, None)
    return Rung(half, longer)


def with_epochs(config: RunConfig, epochs: int) -> RunConfig:
    """Return a configuration with another number of epochs."""
    return replace(config, training=replace(config.training, epochs=epochs))


def shortened(config: RunConfig, epochs: int | None) -> RunConfig:
    """Return a configuration with at most so many epochs, and without restarts."""
    if epochs is None or epochs >= config.training.epochs:
        return config
    return replace(config, training=replace(config.training, epochs=epochs, restarts=0))
