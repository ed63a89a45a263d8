"""The value of features and edges on predictions whose quality is known."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nfgnn.auto import BOTH, FEATURES, LINKS, LeaderboardEntry, ScoredNodes, bootstrap_score
from nfgnn.auto.graph_value import CONSTANT, ValidationPredictions, graph_value
from nfgnn.training import METRICS, RunConfig

CLASSES = ["a", "b", "c", "d"]
MODELS = {FEATURES: "MLP", LINKS: "LINK", BOTH: "GCN"}


def labels(n: int) -> Tensor:
    return torch.arange(n) % len(CLASSES)


def predicted(y: Tensor, accuracy: float, seed: int) -> Tensor:
    """Return probabilities that are right for a random share of the nodes, else a random class."""
    generator = torch.Generator().manual_seed(seed)
    right = torch.rand(len(y), generator=generator) < accuracy
    other = torch.randint(len(CLASSES), (len(y),), generator=generator)
    chosen = torch.where(right, y, other)
    return 0.1 + 0.6 * torch.nn.functional.one_hot(chosen, len(CLASSES)).double()


def validation(
    models: dict[str, tuple[str, list[Tensor]]], scored: ScoredNodes, metric: str = "accuracy"
) -> ValidationPredictions:
    """Return a leaderboard of models that are given as name, family and probabilities."""
    entries = []
    for name, (family, rows) in models.items():
        score = bootstrap_score(scored.first(len(rows)), METRICS[metric], rows)
        config = RunConfig(MODELS[family])
        entries.append(LeaderboardEntry(name, config, family, "portfolio", len(rows), score, 1.0))
    better = METRICS[metric].greater_is_better
    entries.sort(key=lambda entry: entry.validation.value, reverse=better)
    rows_by_name = {name: rows for name, (_, rows) in models.items()}
    return ValidationPredictions(entries, rows_by_name, scored, METRICS[metric])


def one_split(n: int) -> ScoredNodes:
    return ScoredNodes((torch.arange(n),), (labels(n),), len(CLASSES))


def ring(n: int) -> Tensor:
    nodes = torch.arange(n)
    return torch.stack([torch.cat([nodes, nodes.roll(1)]), torch.cat([nodes.roll(1), nodes])])


def test_paired_comparison_of_two_models_is_mcnemar() -> None:
    # The first model is right where the second is not on 60 nodes, the reverse on 40 nodes.
    n = 400
    y = labels(n)
    wrong = (y + 1) % len(CLASSES)
    first = torch.nn.functional.one_hot(torch.where(torch.arange(n) < 40, wrong, y)).double()
    worse = (torch.arange(n) >= 40) & (torch.arange(n) < 100)
    second = torch.nn.functional.one_hot(torch.where(worse, wrong, y)).double()
    models = {"one": (BOTH, [first]), "two": (FEATURES, [second])}
    predictions = validation(models, one_split(n))
    comparison = predictions.compare(predictions.family(BOTH), predictions.family(FEATURES))
    difference = (60 - 40) / n
    error = math.sqrt((60 + 40) / n - difference**2) / math.sqrt(n)
    assert comparison.difference == pytest.approx(difference)
    assert comparison.low == pytest.approx(difference - 1.96 * error, abs=0.006)
    assert comparison.high == pytest.approx(difference + 1.96 * error, abs=0.006)
    assert comparison.confidence == pytest.approx(0.977, abs=0.02)


def test_choosing_the_best_of_many_random_models_is_no_gain() -> None:
    scored = one_split(120)
    excluded = 0
    seeming = []
    corrected = []
    for repeat in range(10):
        models = {}
        for i in range(12):
            rows = [predicted(scored.labels[0], 0.0, 100 * repeat + i)]
            models[f"m{i}"] = (BOTH, rows)
        predictions = validation(models, scored)
        comparison = predictions.compare(predictions.entries, [])
        seeming.append(predictions.entries[0].validation.value - 1 / len(CLASSES))
        corrected.append(comparison.difference)
        excluded += comparison.low > 0
    assert excluded == 0
    assert sum(seeming) / len(seeming) > 0.04
    assert abs(sum(corrected) / len(corrected)) < 0.02


def test_both_together_help_where_each_is_weak() -> None:
    scored = one_split(400)
    y = scored.labels[0]
    models = {
        "MLP": (FEATURES, [predicted(y, 0.3, 0)]),
        "MLP 2": (FEATURES, [predicted(y, 0.2, 1)]),
        "LINK": (LINKS, [predicted(y, 0.3, 2)]),
        "GCN": (BOTH, [predicted(y, 0.8, 3)]),
    }
    value = graph_value(validation(models, scored), ring(400), y, CLASSES)
    assert {family: entry.name for family, entry in value.families.items()} == {
        BOTH: "GCN",
        FEATURES: "MLP",
        LINKS: "LINK",
    }
    assert value.graph_helps is not None
    assert (value.graph_helps.first, value.graph_helps.second) == ("GCN", "MLP")
    assert value.graph_helps.low > 0.2
    assert value.features_help is not None
    assert (value.features_help.first, value.features_help.second) == ("GCN", "LINK")
    assert (value.learnable.first, value.learnable.second) == ("GCN", CONSTANT)
    text = " ".join(value.sentences)
    assert "The edges help: the best model that uses them, GCN, gains" in text
    # LINK may be worse for another reason than the missing features.
    assert "The features seem to help, but there was no time to train the best model" in text
    bare = graph_value(validation(models, scored), ring(400), y, CLASSES, has_features=False)
    assert bare.features_help is None
    assert "has no features of its own" in " ".join(bare.sentences)


def test_ablations_are_compared_but_not_chosen() -> None:
    scored = one_split(800)
    y = scored.labels[0]
    good = predicted(y, 0.7, 0)
    models = {
        "GCN": (BOTH, [good]),
        "LINK": (LINKS, [predicted(y, 0.1, 1)]),
        "GCN without features": (LINKS, [predicted(y, 0.72, 2)]),
    }
    every = validation(models, scored)
    ablations = [entry for entry in every.entries if "without" in entry.name]
    others = [entry for entry in every.entries if "without" not in entry.name]
    predictions = replace(every, entries=others, ablations=ablations)
    assert [entry.name for entry in predictions.family(LINKS)] == ["GCN without features", "LINK"]
    value = graph_value(predictions, ring(800), y, CLASSES)
    assert value.learnable.first == "GCN"
    assert value.features_help is not None
    assert value.features_help.second == "GCN without features"
    assert "the features do not help" in " ".join(value.sentences).lower()


def test_useless_edges_and_useless_features() -> None:
    scored = one_split(800)
    y = scored.labels[0]
    good = predicted(y, 0.7, 0)
    models = {
        "MLP": (FEATURES, [good]),
        "LINK": (LINKS, [predicted(y, 0.0, 1)]),
        "GCN": (BOTH, [predicted(y, 0.6, 2)]),
    }
    text = " ".join(graph_value(validation(models, scored), ring(800), y, CLASSES).sentences)
    assert "The edges do not help" in text
    assert "The features help" in text
    models["MLP"] = (FEATURES, models["LINK"][1])
    models["LINK"] = (LINKS, [good])
    text = " ".join(graph_value(validation(models, scored), ring(800), y, CLASSES).sentences)
    assert "The edges help" in text
    assert "The features do not help" in text


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc", "macro_f1", "log_loss"])
def test_shuffled_labels_teach_nothing(metric: str) -> None:
    scored = one_split(200)
    y = scored.labels[0]
    models = {
        name: (family, [predicted(y, 0.0, i)])
        for i, (name, family) in enumerate({"MLP": FEATURES, "LINK": LINKS, "GCN": BOTH}.items())
    }
    value = graph_value(validation(models, scored, metric), ring(200), y, CLASSES)
    assert len(value.sentences) == 1
    assert "nothing can be learned from these features and edges" in value.sentences[0].lower()
    if metric == "accuracy":  # a gain of two points is not excluded
        assert "As far as 200 validation nodes show" in value.sentences[0]


def test_classes_are_told_apart_below_the_score_of_the_majority() -> None:
    n = 200
    y = torch.zeros(n, dtype=torch.long)
    y[:20] = 1
    # All nodes of the small class are found, and a fifth of the others is taken for it.
    chosen = y.clone()
    chosen[20:56] = 1
    rows = torch.nn.functional.one_hot(chosen, len(CLASSES)).double()
    scored = ScoredNodes((torch.arange(n),), (y,), len(CLASSES))
    value = graph_value(validation({"GCN": (BOTH, [rows])}, scored), ring(n), y, CLASSES)
    assert value.sentences[0] == (
        "The best model, GCN, agrees with the labels more than chance does: Cohen's kappa is "
        "44.4 % on 200 validation nodes, and 0.0 % for always predicting 'a'."
    )
    assert value.sentences[1].startswith("Its accuracy is not clearly above that of always")


def test_predicting_the_majority_for_every_node_is_nothing_learned() -> None:
    scored = ScoredNodes((torch.arange(180),), ((torch.arange(180) < 60).long(),), 2)
    rows = torch.tensor([0.8, 0.2]).expand(180, 2)
    models = {"MLP": (FEATURES, [rows]), "GCN": (BOTH, [rows])}
    value = graph_value(validation(models, scored), ring(180), scored.labels[0], ["no", "yes"])
    assert value.sentences == (
        "Nothing can be learned from these features and edges: the best model scores 66.7 %; "
        "always predicting 'no' scores 66.7 % (accuracy on 180 validation nodes). The gain, "
        "corrected for choosing the best of 2, is 0.0 points (95 % interval −1.7 to 1.7).",
    )


def test_a_gain_that_is_nearly_certain_is_not_claimed() -> None:
    # 12 nodes are gained and 5 lost against the majority: 7 with a standard error of 4.1.
    y = (torch.arange(60) >= 30).long()
    right = (torch.arange(60) >= 5) & (torch.arange(60) < 42)
    rows = torch.nn.functional.one_hot(torch.where(right, y, 1 - y), 2).double()
    scored = ScoredNodes((torch.arange(60),), (y,), 2)
    models = {"GCN": (BOTH, [rows])}
    value = graph_value(validation(models, scored), ring(60), y, ["no", "yes"])
    assert value.learnable.low <= 0 < value.learnable.high
    assert 0.9 <= value.learnable.confidence < 1
    assert value.sentences[0].startswith("It is not certain that anything can be learned")


def test_the_substitute_of_macro_f1_is_named_with_its_reason() -> None:
    scored = one_split(200)
    models = {"GCN": (BOTH, [predicted(labels(200), 0.8, seed=1)])}
    verdicts = []
    for metric in ("balanced_accuracy", "macro_f1"):
        predictions = validation(models, scored, metric)
        verdicts.append(graph_value(predictions, ring(200), labels(200), CLASSES).sentences[0])
    own, substitute = verdicts
    assert own.endswith("(balanced accuracy on 200 validation nodes).")
    assert substitute == own.replace(
        "nodes)",
        "nodes; macro-F1 is not compared with a constant prediction, because random guesses "
        "score more)",
    )


def test_lower_losses_are_gains() -> None:
    scored = one_split(400)
    y = scored.labels[0]
    models = {
        "MLP": (FEATURES, [predicted(y, 0.2, 0)]),
        "GCN": (BOTH, [predicted(y, 0.9, 1)]),
    }
    value = graph_value(validation(models, scored, "log_loss"), ring(400), y, CLASSES)
    assert value.graph_helps is not None
    assert value.graph_helps.difference < 0
    assert value.graph_helps.confidence == 1.0
    assert "The edges help" in " ".join(value.sentences)
    assert value.features_help is None
    assert "It is unknown whether the features help" in " ".join(value.sentences)


def test_accuracy_by_local_homophily() -> None:
    # Nodes 0 to 49 have neighbours of their own class, the others of another one.
    y = torch.arange(100) // 25
    own = torch.arange(0, 50, 2)
    other = torch.arange(50, 75)
    edges = torch.cat([torch.stack([own, own + 1]), torch.stack([other, other + 25])], 1)
    edge_index = torch.cat([edges, edges.flip(0)], 1)
    # In an odd class of 25 nodes one pair crosses the classes.
    h = torch.ones(100)
    h[24:26] = 0
    h[50:] = 0
    features = torch.nn.functional.one_hot(torch.where(torch.arange(100) < 10, y, 3 - y)).double()
    graph = torch.nn.functional.one_hot(torch.where(h > 0, y, 3 - y)).double()
    scored = ScoredNodes((torch.arange(100), torch.arange(50)), (y, y[:50]), len(CLASSES))
    models = {
        "MLP": (FEATURES, [features, features[:50]]),
        "GCN": (BOTH, [graph, graph[:50]]),
    }
    value = graph_value(validation(models, scored), edge_index, y, CLASSES)
    first = value.intervals[0]
    last = value.intervals[-1]
    assert [part.nodes for part in value.intervals] == [52, 0, 0, 0, 48]
    assert (first.features, first.graph) == (0.0, 0.0)
    assert (last.low, last.high) == (0.8, 1.0)
    assert last.features == pytest.approx(10 / 48)
    assert last.graph == 1.0
    assert last.gain_low is not None
    assert 0.5 < last.gain_low < 38 / 48
    assert value.intervals[1].graph is None
    assert "h from 0.8 to 1.0 (+79.2 points of accuracy, 48 nodes)" in " ".join(value.sentences)


def test_entries_with_fewer_splits_are_compared_on_common_ones() -> None:
    n = 60
    nodes = torch.arange(n)
    scored = ScoredNodes((nodes, nodes), (labels(n), labels(n)), len(CLASSES))
    first = predicted(labels(n), 0.5, 0)
    models = {
        "GCN": (BOTH, [predicted(labels(n), 0.9, 1), predicted(labels(n), 0.9, 2)]),
        "MLP": (FEATURES, [first]),
    }
    predictions = validation(models, scored)
    comparison = predictions.compare(predictions.family(BOTH), predictions.family(FEATURES))
    only_first = scored.first(1)
    accuracy = METRICS["accuracy"]
    expected = only_first.score(accuracy, [models["GCN"][1][0]]) - only_first.score(
        accuracy, [first]
    )
    assert comparison.difference == pytest.approx(expected)


def test_scores_over_different_numbers_of_splits_are_marked() -> None:
    y = labels(200)
    scored = ScoredNodes((torch.arange(200),) * 2, (y, y), len(CLASSES))
    rows = [predicted(y, 0.8, seed) for seed in range(4)]
    same = {"MLP": (FEATURES, rows[:2]), "GCN": (BOTH, rows[2:])}
    fewer = {"MLP": (FEATURES, rows[:2]), "GCN": (BOTH, rows[2:3])}
    marks = []
    for models in (same, fewer):
        text = " ".join(graph_value(validation(models, scored), ring(200), y, CLASSES).sentences)
        marks.append("means over different numbers of splits" in text)
    assert marks == [False, True]


def test_graph_without_edges_has_no_intervals() -> None:
    scored = one_split(40)
    models = {"MLP": (FEATURES, [predicted(scored.labels[0], 0.9, 0)])}
    value = graph_value(validation(models, scored), None, scored.labels[0], CLASSES)
    assert value.intervals == ()
    assert value.graph_helps is None


def test_too_few_nodes_for_a_verdict() -> None:
    # 7 nodes are gained and 4 lost: 3 of 40 with a standard error of 3.3.
    y = (torch.arange(40) >= 20).long()
    first = (torch.arange(40) >= 4) & (torch.arange(40) < 27)
    rows = torch.nn.functional.one_hot(torch.where(first, y, 1 - y), 2).double()
    base = torch.nn.functional.one_hot(torch.zeros_like(y), 2).double()
    scored = ScoredNodes((torch.arange(40),), (y,), 2)
    models = {"GCN": (BOTH, [rows]), "MLP": (FEATURES, [base])}
    value = graph_value(validation(models, scored), ring(40), y, ["no", "yes"])
    assert value.learnable.confidence < 0.9
    assert value.sentences[0].startswith("40 validation nodes are too few to tell")


def test_equal_predictions_on_few_nodes_are_no_certain_tie() -> None:
    y = labels(8)
    same = predicted(y, 0.5, seed=0)
    models = {"first": (FEATURES, [same]), "second": (BOTH, [same])}
    compared = validation(models, one_split(8))
    comparison = compared.compare(compared.entries[:1], compared.entries[1:])
    assert comparison.difference == 0
    assert (comparison.low, comparison.high) == (-3 / 8, 3 / 8)
