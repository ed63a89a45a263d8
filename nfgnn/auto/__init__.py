"""The best model for a graph that was never seen before, without settings.

:mod:`~nfgnn.auto.result` holds the values that a search returns.
"""

from nfgnn.auto.result import (
    BOTH,
    FEATURES,
    LINKS,
    AutoResult,
    Comparison,
    Ensemble,
    EnsembleMember,
    GraphValue,
    HomophilyInterval,
    LeaderboardEntry,
    Score,
)

__all__ = [
    "BOTH",
    "FEATURES",
    "LINKS",
    "AutoResult",
    "Comparison",
    "Ensemble",
    "EnsembleMember",
    "GraphValue",
    "HomophilyInterval",
    "LeaderboardEntry",
    "Score",
]
