"""A small outcome of a search, written by hand."""

from nfgnn.auto.result import (
    BOTH,
    FEATURES,
    AutoResult,
    Comparison,
    Ensemble,
    EnsembleMember,
    GraphValue,
    HomophilyInterval,
    LeaderboardEntry,
    Score,
)
from nfgnn.training import RunConfig

SCORE = Score(0.8, 0.7, 0.9, 40)


def entry(model: str, family: str, value: float, **settings) -> LeaderboardEntry:
    config = RunConfig.resolve(model, settings, None, None, "none")
    score = Score(value, value - 0.1, value + 0.1, 40)
    return LeaderboardEntry(model, config, family, "portfolio", 5, score, 1.5)


def auto_result(**changes) -> AutoResult:
    """Return a result with two models, changed in some fields."""
    gcn = entry("GCN", BOTH, 0.8, lr=0.05)
    mlp = entry("MLP", FEATURES, 0.7)
    comparison = Comparison("GCN", "MLP", 0.1, 0.02, 0.18, 0.99)
    values = {
        "dataset": "karate",
        "protocol": "stratified",
        "seed": 0,
        "metric": "accuracy",
        "device": "cpu",
        "classes": ["a", "b"],
        "class_counts": {"train": [10, 10], "val": [4, 4], "test": [3, 3]},
        "majority": {"test_accuracy": 0.5},
        "leaderboard": (gcn, mlp),
        "ensemble": Ensemble(
            (EnsembleMember("GCN", 0.75, 1.2), EnsembleMember("MLP", 0.25, 0.9)), 1.1, SCORE
        ),
        "test": SCORE,
        "ensemble_test": SCORE,
        "value": GraphValue(
            {BOTH: gcn, FEATURES: mlp},
            comparison,
            None,
            comparison,
            (HomophilyInterval(0.0, 0.2, 10, 0.5, None),),
            ("The edges help.",),
        ),
        "validation_splits": 5,
        "runs": 10,
        "seconds": 12.5,
        "seconds_to_first": 1.5,
        "time_limit": None,
        "command": "nfgnn train karate --preset best.toml",
    }
    return AutoResult(**{**values, **changes})
