"""The scores that unfinished trainings are expected to reach.

Within the same time a deep network is trained for a few epochs and a shallow one for hundreds. The
scores at that moment would always favour the shallow one. An unfinished training is therefore
expected to gain as much as others have gained after the same number of epochs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


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

    The expected gain is the median over all trainings of more epochs.
    """
    return [
        run.score if run.is_finished else run.score + _expected_gain(runs, len(run.curve))
        for run in runs
    ]


def _expected_gain(runs: Sequence[PartialRun], epochs: int) -> float:
    """Return the usual difference between the best score of all epochs and of the first ones."""
    gains = [
        max(run.curve) - max(run.curve[:epochs]) for run in runs if len(run.curve) > epochs > 0
    ]
    # A score that is not defined in the first epochs says nothing about the gain.
    finite = [gain for gain in gains if math.isfinite(gain)]
    return median(finite) if finite else 0.0
