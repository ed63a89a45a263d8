"""The order and the names of a leaderboard."""

from helpers.candidates import candidate, predictions, validation_split

from nfgnn.auto.leaderboard import build_leaderboard, rank_candidates
from nfgnn.training import METRICS

LABELS = [0, 1, 0, 1, 0, 1, 0, 1]


def correct(number: int, confidence: float = 0.8):
    """Return predictions of which the first ones are right."""
    classes = [y if i < number else 1 - y for i, y in enumerate(LABELS)]
    return predictions(classes, confidence=confidence)


def test_the_best_is_first_and_names_are_unique() -> None:
    splits = [validation_split(LABELS)]
    weak = candidate("GCN", correct(4))
    strong = candidate("GCN", correct(7))
    sure = candidate("MLP", correct(6, confidence=0.99))
    unsure = candidate("MLP", correct(6, confidence=0.6))
    ranked = rank_candidates([weak, sure, strong, unsure], splits, METRICS["accuracy"])
    # Two of eight are wrong, so the less confident of the two equals has the smaller log loss.
    assert ranked == [strong, unsure, sure, weak]
    board = build_leaderboard(ranked, splits, METRICS["accuracy"])
    assert [entry.name for entry in board] == ["GCN", "MLP", "MLP 2", "GCN 2"]
    assert [entry.validation.value for entry in board] == [7 / 8, 6 / 8, 6 / 8, 4 / 8]
    by_loss = rank_candidates([sure, strong, weak], splits, METRICS["log_loss"])
    assert by_loss == [strong, weak, sure]


def test_one_lucky_split_does_not_win() -> None:
    splits = [validation_split(LABELS), validation_split(LABELS, first_node=8)]
    lucky = candidate("GCN", correct(8))
    steady = candidate("MLP", correct(6), correct(6))
    assert rank_candidates([lucky, steady], splits, METRICS["accuracy"]) == [steady, lucky]
    assert build_leaderboard([steady, lucky], splits, METRICS["accuracy"])[0].splits == 2
