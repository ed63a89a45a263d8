"""The models that a search ends with, against means by hand."""

from pathlib import Path

import torch
from helpers.searches import train_candidates

from nfgnn import NodeClassifier
from nfgnn.auto.final_models import final_models
from nfgnn.auto.leaderboard import build_leaderboard
from nfgnn.auto.validation import validation_splits
from nfgnn.data import load_dataset, split
from nfgnn.training import (
    Experiment,
    Graph,
    class_counts,
    count_predictions,
    never_predicted_warning,
    report_per_class,
    resolve_metric,
)


def test_members_of_the_ensemble_predict_with_the_runs_of_all_splits(tmp_path: Path) -> None:
    # The karate club has 7 validation nodes and therefore five splits.
    graph = Graph.of(load_dataset("karate"))
    metric = resolve_metric("auto", graph.data)
    ranked = train_candidates(tmp_path, graph)
    scored = validation_splits(graph, "stratified", 0, metric).scored
    entries = build_leaderboard(ranked, scored, metric)
    experiment = Experiment(graph, "stratified", [0], ranked[0].config, "cpu", None)
    final = final_models(ranked, entries, scored, metric, experiment)
    assert final.ensemble is not None
    assert final.classifier is not None
    data = split(graph.data, "stratified", 0)
    folders = {entry.name: ranked[i].folders for i, entry in enumerate(entries)}
    mean = torch.zeros(data.num_nodes, data.num_classes, dtype=torch.float64)
    for member in final.ensemble.members:
        assert len(folders[member.name]) == 5
        for folder in folders[member.name]:
            shares = NodeClassifier.load(folder, "cpu").predict_proba(data).double()
            powers = shares ** (1 / member.temperature)
            mean += member.weight / 5 * powers / powers.sum(1, keepdim=True)
    powers = mean ** (1 / final.ensemble.temperature)
    expected = (powers / powers.sum(1, keepdim=True)).float()
    found = final.classifier.predict_proba(data)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert final.classifier.seed == 0
    # The single model is the run on the given split.
    single = NodeClassifier.load(ranked[0].folder, "cpu").predict_proba(data)
    torch.testing.assert_close(final.run.classifier.predict_proba(data), single)


def test_classes_that_no_test_node_is_predicted_as_are_reported(tmp_path: Path) -> None:
    graph = Graph.of(load_dataset("karate"))
    metric = resolve_metric("auto", graph.data)
    ranked = train_candidates(tmp_path, graph, epochs=1)
    scored = validation_splits(graph, "stratified", 0, metric).scored
    entries = build_leaderboard(ranked, scored, metric)
    experiment = Experiment(graph, "stratified", [0], ranked[0].config, "cpu", None)
    data = split(graph.data, "stratified", 0)
    for single in (False, True):
        final = final_models(ranked, entries, scored, metric, experiment, single)
        predictor = final.run.classifier if single else final.classifier
        assert predictor is not None
        shares = predictor.predict_proba(data)
        predicted = shares[data.test_mask].argmax(1).unique().tolist()
        missing = [c for c in data.y[data.test_mask].unique().tolist() if c not in predicted]
        assert missing
        assert final.warning is not None
        assert [c for c in range(4) if f"'{c}' (" in final.warning] == missing
        report = report_per_class(count_predictions(shares, data), data)
        assert final.warning == never_predicted_warning(report, class_counts(data), metric)
