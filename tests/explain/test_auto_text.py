"""The sentences about a search."""

from dataclasses import replace

from helpers.auto_results import SENTENCES, auto_result, entry

from nfgnn.auto import BOTH, Ensemble, EnsembleMember, Score
from nfgnn.explain.auto_text import changed_settings, describe_auto, shown_score
from nfgnn.training import METRICS


def test_report_states_scores_with_intervals_and_the_constant_prediction() -> None:
    text = describe_auto(auto_result())
    assert text.title == "survey: the best of 5 configurations"
    assert text.summary == (
        SENTENCES[0],
        "On 250 test nodes, which were not used in the search, this model scores 83.0 % "
        "(78.0 to 87.0); a constant prediction scores 40.0 % (accuracy).",
        "An ensemble of 2 models scores 84.5 % (80.0 to 89.0) on the same nodes. `nfgnn predict` "
        "uses it unless --single is given.",
    )
    assert text.findings == SENTENCES[1:]
    assert text.model == "NFGNN with rank=3, gate=agreement, lr=0.02"
    assert text.cost == (
        "5 configurations in 9 runs, 58 s (limit 60 s) on cpu; the first model was trained after "
        "6 s."
    )
    assert "the best of 5 configurations" in text.remark


def test_tiles_have_the_score_and_what_edges_and_features_add() -> None:
    score, edges, features = describe_auto(auto_result()).tiles
    assert (score.label, score.value, score.beside) == ("Accuracy", "84.5 %", "constant: 40.0 %")
    assert score.text == "Ensemble of 2 models on 250 test nodes. 95 % interval: 80.0 to 89.0."
    assert (edges.value, edges.beside) == ("+6.0 points", "95 %: 1.0 to 11.0")
    assert edges.text == "Gain of NFGNN over MLP on validation nodes, with its 95 % interval."
    assert (features.label, features.value) == ("Features", "+20.0 points")
    value = replace(auto_result().value, features_help=None)
    alone = describe_auto(auto_result(test=None, ensemble=None, ensemble_test=None, value=value))
    assert alone.tiles[0].text == "NFGNN on 250 validation nodes. 95 % interval: 80.0 to 88.0."
    assert alone.tiles[2].value == "not compared"


def test_a_single_model_claims_no_ensemble() -> None:
    single = describe_auto(auto_result(ensemble=None, ensemble_test=None))
    assert len(single.summary) == 2
    alone = Ensemble((EnsembleMember("NFGNN", 1.0),), 1.0, Score(0.84, 0.8, 0.88, 250))
    assert "use this model alone" in describe_auto(auto_result(ensemble=alone)).summary[-1]
    first = auto_result().leaderboard[:1]
    only = describe_auto(auto_result(ensemble=alone, leaderboard=first)).summary[-1]
    assert only.startswith("Only one configuration was trained, so no ensemble was possible")
    unknown = describe_auto(auto_result(test=None, ensemble_test=None))
    assert unknown.summary[-1].startswith("No test nodes are labelled")


def test_repeated_validation_and_a_number_of_runs_are_mentioned() -> None:
    repeated = (replace(entry("GCN", BOTH, 0.8), splits=5),)
    text = describe_auto(
        auto_result(validation_splits=5, leaderboard=repeated, time_limit=None, runs=1)
    )
    assert "limit" not in text.cost
    assert "in 1 run," in text.cost
    assert "mean score over 5 splits" in text.cost
    assert "A longer --time" in describe_auto(auto_result(validation_splits=5)).cost


def test_settings_that_differ_from_the_defaults() -> None:
    default = entry("GCN", BOTH, 0.8).config
    assert changed_settings(default) == {}
    only = auto_result(leaderboard=(entry("GCN", BOTH, 0.8),))
    assert describe_auto(only).model == "GCN with its default settings"
    assert describe_auto(only).title == "survey: the best of 1 configuration"


def test_losses_are_plain_numbers() -> None:
    score = Score(0.51234, 0.4, 0.6, 10)
    assert shown_score(score, METRICS["log_loss"]) == "0.512 (0.400 to 0.600)"
