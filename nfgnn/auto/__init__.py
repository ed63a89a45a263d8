"""The best model for a graph that was never seen before, without settings.

:mod:`~nfgnn.auto.portfolio` lists the configurations that a search trains first.
:mod:`~nfgnn.auto.result` holds the values that a search returns.
:mod:`~nfgnn.auto.bootstrap` computes confidence intervals.
"""

from nfgnn.auto.bootstrap import ScoredNodes, bootstrap_score
from nfgnn.auto.portfolio import (
    PORTFOLIO_TABLE,
    PortfolioEntry,
    load_portfolio,
    model_family,
)
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
    "PORTFOLIO_TABLE",
    "AutoResult",
    "Comparison",
    "Ensemble",
    "EnsembleMember",
    "GraphValue",
    "HomophilyInterval",
    "LeaderboardEntry",
    "PortfolioEntry",
    "Score",
    "ScoredNodes",
    "bootstrap_score",
    "load_portfolio",
    "model_family",
]
