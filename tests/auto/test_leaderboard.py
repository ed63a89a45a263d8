"""The order and the names of a leaderboard."""

from pathlib import Path

import torch
from helpers.model_predictions import predictions
from torch import Tensor

from nfgnn.auto.bootstrap import ScoredNodes
from nfgnn.auto.candidate import Candidate
from nfgnn.auto.leaderboard import build_leaderboard, rank_candidates
from nfgnn.training import METRICS, RunConfig

LABELS = [0, 1, 0, 1, 0, 1, 0, 1]
ACCURACY = METRICS["accuracy"]


def scored(splits: int) -> ScoredNodes:
    nodes = tuple(torch.arange(8) + 8 * split for split in range(splits))
    return ScoredNodes(nodes, (torch.tensor(LABELS),) * splits, 2)


def correct(number: int, confidence: float = 0.8) -> Tensor:
    """Return predictions of which the first ones are right."""
    classes = [y if i < number else 1 - y for i, y in enumerate(LABELS)]
    return predictions(classes, confidence=confidence)


def candidate(model: str, *probabilities: Tensor) -> Candidate:
    config = RunConfig.resolve(model, {}, None, None, "none")
    return Candidate(config, "features", "portfolio", Path("unused"), probabilities, 1.0)


def test_the_best_is_first_and_names_are_unique() -> None:
    weak = candidate("GCN", correct(4))
    strong = candidate("GCN", correct(7))
    sure = candidate("MLP", correct(6, confidence=0.99))
    unsure = candidate("MLP", correct(6, confidence=0.6))
    ranked = rank_candidates([weak, sure, strong, unsure], scored(1), ACCURACY)
    # Two of eight are wrong, so the less confident of the two equals has the smaller log loss.
    assert ranked == [strong, unsure, sure, weak]
    board = build_leaderboard(ranked, scored(1), ACCURACY)
    assert [entry.name for entry in board] == ["GCN", "MLP", "MLP 2", "GCN 2"]
    assert [entry.validation.value for entry in board] == [7 / 8, 6 / 8, 6 / 8, 4 / 8]
    by_loss = rank_candidates([sure, strong, weak], scored(1), METRICS["log_loss"])
    assert by_loss == [strong, weak, sure]


def test_one_lucky_split_does_not_win() -> None:
    lucky = candidate("GCN", correct(8))
    steady = candidate("MLP", correct(6), correct(6))
    assert rank_candidates([lucky, steady], scored(2), ACCURACY) == [steady, lucky]
    assert build_leaderboard([steady, lucky], scored(2), ACCURACY)[0].splits == 2


def test_a_poor_model_does_not_win_by_its_number_of_splits() -> None:
    """Two standard errors are about 0.3 on 8 nodes, less than the gain of 3 nodes."""
    poor = candidate("GCN", correct(4), correct(4))
    good = candidate("MLP", correct(7))
    fair = candidate("LINK", correct(5))
    ranked = rank_candidates([poor, good, fair], scored(2), ACCURACY)
    assert ranked == [good, poor, fair]


def test_splits_of_different_difficulty_are_compared_in_pairs() -> None:
    """The first split is easy for everybody, so a high score there is nothing special."""
    complete = candidate("GCN", correct(8), correct(3))
    started = candidate("MLP", correct(7))
    assert rank_candidates([started, complete], scored(2), ACCURACY) == [complete, started]
    by_loss = rank_candidates([started, complete], scored(2), METRICS["log_loss"])
    assert by_loss == [complete, started]
