"""Outcomes of a search that were made by hand, for tests of reports."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from nfgnn.auto import (
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
from nfgnn.training import RunConfig

SENTENCES = (
    "The best model, NFGNN, scores 84.0 %; always predicting 'music' scores 40.0 % (accuracy on "
    "250 validation nodes).",
    "The edges help: NFGNN gains 6.0 points.",
)


def entry(
    name: str, family: str, value: float, origin: str = "portfolio", **settings: Any
) -> LeaderboardEntry:
    """Return an entry whose name starts with its model."""
    config = RunConfig.resolve(name.split()[0], settings, None, None, "none")
    score = Score(value, value - 0.04, value + 0.04, 250)
    return LeaderboardEntry(name, config, family, origin, 1, score, 3.5)


def auto_result(**changes: Any) -> AutoResult:
    """Return the outcome of a search on a graph with three classes."""
    leaderboard = (
        entry("NFGNN", BOTH, 0.84, "search", gate="agreement", rank=3, lr=0.02),
        entry("GCN", BOTH, 0.82),
        entry("MLP", FEATURES, 0.76, features="row"),
        entry("GCN 2", BOTH, 0.75, hidden_channels=32),
        entry("LINK", LINKS, 0.61),
    )
    value = GraphValue(
        families={BOTH: leaderboard[0], FEATURES: leaderboard[2], LINKS: leaderboard[4]},
        graph_helps=Comparison("NFGNN", "MLP", 0.06, 0.01, 0.11, 0.99),
        features_help=Comparison("NFGNN", "LINK", 0.2, 0.1, 0.3, 1.0),
        learnable=Comparison("NFGNN", "constant prediction", 0.4, 0.3, 0.5, 1.0),
        intervals=(
            HomophilyInterval(0.0, 0.2, 40, 0.7, 0.5, -0.3, -0.05),
            HomophilyInterval(0.2, 0.4, 4, 0.5, 0.75),
            HomophilyInterval(0.4, 0.6, 0, None, None),
            HomophilyInterval(0.6, 0.8, 60, 0.75, 0.8, -0.02, 0.12),
            HomophilyInterval(0.8, 1.0, 120, 0.78, 0.95, 0.1, 0.25),
        ),
        sentences=SENTENCES,
    )
    members = (EnsembleMember("NFGNN", 0.6), EnsembleMember("MLP", 0.4))
    result = AutoResult(
        dataset="survey",
        protocol="stratified",
        seed=0,
        metric="accuracy",
        device="cpu",
        classes=["art", "music", "science"],
        class_counts={"train": [200, 300, 250], "val": [66, 100, 84], "test": [67, 100, 83]},
        majority={"train_accuracy": 0.4, "val_accuracy": 0.4, "test_accuracy": 0.4},
        leaderboard=leaderboard,
        ensemble=Ensemble(members, 1.2, Score(0.85, 0.81, 0.89, 250)),
        test=Score(0.83, 0.78, 0.87, 250),
        ensemble_test=Score(0.845, 0.8, 0.89, 250),
        value=value,
        validation_splits=1,
        runs=9,
        seconds=58.2,
        seconds_to_first=6.1,
        time_limit=60.0,
        command="nfgnn train survey/ --protocol stratified --preset runs/survey/best.toml",
        folder=Path("runs/survey"),
    )
    return replace(result, **changes)
