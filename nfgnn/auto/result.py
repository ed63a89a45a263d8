"""What a search for the best model of a graph has found.

These are plain values: the search fills them, files keep them, and reports read nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nfgnn.auto.json_values import from_json, to_json
from nfgnn.training import RunConfig

FEATURES = "features"
"""Family of models that ignore the edges."""
LINKS = "links"
"""Family of models that ignore the features."""
BOTH = "features and links"
"""Family of models that use the edges and the features."""


@dataclass(frozen=True)
class Score:
    """A metric of a part of the nodes, with a 95 % confidence interval."""

    value: float
    low: float
    high: float
    nodes: int
    """Number of nodes that the value is computed from."""


@dataclass(frozen=True)
class LeaderboardEntry:
    """A configuration that was trained to the end."""

    name: str
    """Unique in a leaderboard, such as ``GCN 2``."""
    config: RunConfig
    family: str
    """:data:`FEATURES`, :data:`LINKS` or :data:`BOTH`."""
    origin: str
    """``"portfolio"`` or ``"search"``."""
    splits: int
    """Number of validation splits that it was trained on."""
    validation: Score
    seconds: float
    """Of all its runs together."""


@dataclass(frozen=True)
class EnsembleMember:
    """A trained configuration in an ensemble."""

    name: str
    """Of its leaderboard entry."""
    weight: float
    temperature: float = 1.0
    """Calibrates its probabilities before they are averaged."""


@dataclass(frozen=True)
class Ensemble:
    """Weighted mean of the calibrated probabilities of several models."""

    members: tuple[EnsembleMember, ...]
    temperature: float
    """Calibrates the mean."""
    validation: Score
    """Of nodes that did not select the ensemble that predicts them: see
    :mod:`nfgnn.auto.ensemble`."""


@dataclass(frozen=True)
class Comparison:
    """Two ways to predict the same nodes, compared node by node."""

    first: str
    second: str
    difference: float
    """Score of the first minus score of the second."""
    low: float
    high: float
    """95 % confidence interval of the difference, from paired bootstrap samples of the nodes."""
    confidence: float
    """Share of the bootstrap samples in which the first is better."""


@dataclass(frozen=True)
class HomophilyInterval:
    """Accuracy on nodes whose local homophily lies in one interval."""

    low: float
    high: float
    nodes: int
    features: float | None
    """Accuracy of the best model that ignores the edges; ``None`` if none was trained."""
    graph: float | None
    """Accuracy of the best model that uses the edges."""
    gain_low: float | None = None
    gain_high: float | None = None
    """95 % confidence interval of the second minus the first; ``None`` for too few nodes."""


@dataclass(frozen=True)
class GraphValue:
    """What features alone, links alone and both together reach, on validation nodes."""

    families: dict[str, LeaderboardEntry]
    """Best entry of every family that was trained."""
    graph_helps: Comparison | None
    """The best model that uses edges against the best one that does not."""
    features_help: Comparison | None
    """The best model that uses features against the best one that does not."""
    learnable: Comparison
    """The best model against the best constant prediction: the majority class, or chance for a
    ranking metric. Macro-F1 is replaced by balanced accuracy, because guessing improves it."""
    intervals: tuple[HomophilyInterval, ...]
    sentences: tuple[str, ...]
    """The answer in words, one idea per sentence."""


@dataclass(frozen=True)
class AutoResult:
    """The outcome of a search."""

    dataset: str
    protocol: str
    seed: int
    metric: str
    device: str
    classes: list[str]
    class_counts: dict[str, list[int]]
    """Number of nodes of every class by part (train, val, test)."""
    majority: dict[str, float]
    """Scores of always predicting the majority class, by part and metric (``test_accuracy``)."""
    leaderboard: tuple[LeaderboardEntry, ...]
    """The best first, by the metric on validation nodes."""
    ensemble: Ensemble | None
    test: Score | None
    """The best single model on the test nodes, which are scored once, at the end."""
    ensemble_test: Score | None
    value: GraphValue
    validation_splits: int
    runs: int
    seconds: float
    seconds_to_first: float
    """Until the first configuration was trained to the end."""
    time_limit: float | None
    command: str
    """Trains the best single model again."""
    notes: tuple[str, ...] = ()
    """What the user should know, such as models that were left out."""
    folder: Path | None = None
    warnings: tuple[str, ...] = ()
    """What makes the scores misleading, such as a class that is never predicted."""

    @property
    def best(self) -> LeaderboardEntry:
        """The best single model."""
        return self.leaderboard[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values, without the folder, which may be moved."""
        values: dict[str, Any] = to_json(self)
        del values["folder"]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], folder: Path | None = None) -> "AutoResult":
        """Read the values of :meth:`to_dict`.

        Raises:
            ValueError: if a value is missing or has another type.
        """
        # Files of earlier versions have no warnings.
        result = from_json(cls, {"warnings": [], **values, "folder": None})
        if not result.leaderboard:
            raise ValueError("leaderboard is empty")
        return replace(result, folder=folder)
