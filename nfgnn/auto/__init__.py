"""The best model for a graph that was never seen before, without settings: :func:`run_auto`.

:mod:`~nfgnn.auto.search` decides what is trained, within a :mod:`~nfgnn.auto.budget`.
:mod:`~nfgnn.auto.portfolio` lists the configurations that a search trains first.
:mod:`~nfgnn.auto.result` holds the values that a search returns.
:mod:`~nfgnn.auto.bootstrap` computes confidence intervals, and :mod:`~nfgnn.auto.graph_value` what
features and edges contribute, with :mod:`~nfgnn.auto.ablation`.
:mod:`~nfgnn.auto.ensemble` selects an ensemble, :mod:`~nfgnn.auto.final_models` loads and scores
what a search ends with, and :mod:`~nfgnn.auto.run_files` writes and reads its folder.
:mod:`~nfgnn.auto.seed_ensemble` trains an ensemble of seeds without a search.
:class:`AutoNodeClassifier` does all of it in the style of scikit-learn.
"""

from nfgnn.auto.ablation import has_computed_features
from nfgnn.auto.auto import AutoTask, run_auto, search_models
from nfgnn.auto.bootstrap import ScoredNodes, bootstrap_score
from nfgnn.auto.classifier import AutoNodeClassifier
from nfgnn.auto.ensemble_classifier import EnsembleClassifier
from nfgnn.auto.portfolio import (
    PORTFOLIO_TABLE,
    PortfolioEntry,
    first_configuration,
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
from nfgnn.auto.run_files import (
    is_auto_folder,
    load_predictor,
    read_result,
    verify_auto,
    write_page,
)
from nfgnn.auto.seed_ensemble import fit_seed_ensemble
from nfgnn.auto.verdict import gain, shown_difference

__all__ = [
    "BOTH",
    "FEATURES",
    "LINKS",
    "PORTFOLIO_TABLE",
    "AutoNodeClassifier",
    "AutoResult",
    "AutoTask",
    "Comparison",
    "Ensemble",
    "EnsembleClassifier",
    "EnsembleMember",
    "GraphValue",
    "HomophilyInterval",
    "LeaderboardEntry",
    "PortfolioEntry",
    "Score",
    "ScoredNodes",
    "bootstrap_score",
    "first_configuration",
    "fit_seed_ensemble",
    "gain",
    "has_computed_features",
    "is_auto_folder",
    "load_portfolio",
    "load_predictor",
    "model_family",
    "read_result",
    "run_auto",
    "search_models",
    "shown_difference",
    "verify_auto",
    "write_page",
]
