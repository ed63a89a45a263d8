"""What a search has trained: configurations with their predictions on validation nodes.

The search returns these values. The leaderboard, the ensemble and the value of the graph are
computed from them, and from nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from nfgnn.training import Metric, RunConfig


@dataclass(frozen=True, eq=False)
class ValidationSplit:
    """The validation nodes of one split. The given split is the first of several."""

    nodes: Tensor
    """Indices of labelled nodes, ``[n]``."""
    labels: Tensor
    """Their classes, ``[n]``."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A configuration that was trained to the end, on one split or on several."""

    config: RunConfig
    family: str
    """One of the families of :mod:`nfgnn.auto.result`."""
    origin: str
    """``"portfolio"`` or ``"search"``."""
    folder: Path
    """The run on the given split: the files of a saved model with their checksums,
    ``history.csv``, and ``run.json`` with ``seconds``, ``restarts`` and ``dead``."""
    probabilities: tuple[Tensor, ...]
    """Of the validation nodes of the first splits, ``[n, C]`` each. No model has seen the labels
    of the nodes that it predicts here."""
    seconds: float
    """Of all its runs together."""

    @property
    def splits(self) -> int:
        """Number of splits that it was trained on."""
        return len(self.probabilities)


def mean_score(
    probabilities: Sequence[Tensor], splits: Sequence[ValidationSplit], metric: Metric
) -> float:
    """Return the mean of the metric over the splits that there are predictions for."""
    values = [
        metric.compute(shares, split.labels, shares.shape[-1])
        for shares, split in zip(probabilities, splits)
    ]
    return sum(values) / len(values)
