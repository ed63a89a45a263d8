"""The scores that unfinished trainings are expected to reach.

Within the same time a deep network is trained for a few epochs and a shallow one for hundreds. The
scores at that moment would always favour the shallow one. An unfinished training is therefore
expected to gain as much as others have gained after the same number of epochs. The expectation is
optimistic: continuing a training that gains nothing costs some time, but dropping a good one too
early loses it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

OPTIMISM = 0.8
"""The expected gain is this quantile of the gains of others."""


@dataclass(frozen=True)
class PartialRun:
    """A training so far. Greater scores are better."""

    score: float
    """Of the weights that it would keep now."""
    curve: tuple[float, ...]
    """The score after every epoch."""
    is_finished: bool


def expected_scores(runs: Sequence[PartialRun]) -> list[float]:
    """Return the score of every finished training, and the expected score of the others.

    The expected gain is a quantile over all trainings of more epochs.
    """
    return [
        run.score if run.is_finished else run.score + _expected_gain(runs, len(run.curve))
        for run in runs
    ]


def _expected_gain(runs: Sequence[PartialRun], epochs: int) -> float:
    """Return the expected gain of a training after so many epochs."""
    gains = [
        max(run.curve) - max(run.curve[:epochs]) for run in runs if len(run.curve) > epochs > 0
    ]
    # A score that is not defined in the first epochs says nothing about the gain.
    finite = [gain for gain in gains if math.isfinite(gain)]
    return sorted(finite)[round(OPTIMISM * (len(finite) - 1))] if finite else 0.0
