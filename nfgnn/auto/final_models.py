"""The models that a search ends with, and their only scores on test nodes.

The best model was chosen by its mean score over all validation splits. What is deployed is its run
on the given split: it was trained on the training nodes of that split and stopped by its validation
nodes, as ``nfgnn train`` would do.

The members of the ensemble predict with the runs of all splits that they were compared on. Their
mean has learned from the validation nodes of the given split, too, and varies less than one run.
Where validation nodes are few, this is worth more than another configuration. The validation score
of the ensemble still counts every node in the runs that have not seen its label.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor
from torch_geometric.data import Data

from nfgnn.auto.bootstrap import ScoredNodes, bootstrap_score
from nfgnn.auto.candidate import Candidate
from nfgnn.auto.ensemble import select_ensemble
from nfgnn.auto.ensemble_classifier import EnsembleClassifier, FittedMember
from nfgnn.auto.result import Ensemble, EnsembleMember, LeaderboardEntry, Score
from nfgnn.training import (
    Criterion,
    Experiment,
    History,
    Metric,
    NodeClassifier,
    RunResult,
    class_counts,
    count_predictions,
    never_predicted_warning,
    report_per_class,
)


@dataclass(frozen=True, eq=False)
class FinalModels:
    """The fitted models of a search."""

    experiment: Experiment
    """Trains the best single model again."""
    run: RunResult
    """The best single model, with the graph and the masks of the given split."""
    test: Score
    """Of the best single model."""
    classifier: EnsembleClassifier | None = None
    """The fitted ensemble."""
    ensemble: Ensemble | None = None
    ensemble_test: Score | None = None
    warning: str | None = None
    """About classes that the predictions of the test nodes lack."""


def final_models(
    ranked: Sequence[Candidate],
    entries: Sequence[LeaderboardEntry],
    scored: ScoredNodes,
    metric: Metric,
    experiment: Experiment,
    single: bool = False,
) -> FinalModels:
    """Select the ensemble, load the models and score them on the test nodes.

    Args:
        ranked: the candidates, the best first.
        entries: their entries in the leaderboard, in the same order.
        scored: the validation nodes of all splits.
        metric: the metric of the search.
        experiment: graph, protocol and seed of the search, with the configuration of the best
            candidate.
        single: leave out the ensemble.
    """
    spec = experiment.specs()[0]
    data = spec.split()
    best = _load(ranked[0], data, experiment.device)
    test_nodes = (data.test_mask & (data.y >= 0)).nonzero().flatten()
    test = ScoredNodes((test_nodes,), (data.y[test_nodes],), data.num_classes)
    run = RunResult(spec, best, data)
    own = best.predict_proba(data)
    test_score = bootstrap_score(test, metric, [own[test_nodes]])
    if single:
        warning = _never_predicted(own, data, metric)
        return FinalModels(experiment, run, test_score, warning=warning)
    # Members are compared on the same nodes.
    splits = ranked[0].splits
    pool = [candidate for candidate in ranked if candidate.splits >= splits]
    nodes = scored.first(splits)
    selection = select_ensemble(
        [candidate.probabilities[:splits] for candidate in pool], nodes, metric, spec.seed
    )
    members = []
    fitted = []
    for member in selection.members:
        candidate = pool[member.position]
        name = entries[ranked.index(candidate)].name
        members.append(EnsembleMember(name, member.weight, member.temperature))
        for folder in candidate.folders[:splits]:
            classifier = NodeClassifier.load(folder, experiment.device)
            share = member.weight / splits
            fitted.append(FittedMember(name, share, member.temperature, classifier))
    ensemble_classifier = EnsembleClassifier(fitted, selection.temperature)
    shares = ensemble_classifier.predict_proba(data)
    validation = bootstrap_score(nodes, metric, selection.held_out)
    return FinalModels(
        experiment,
        run,
        test_score,
        ensemble_classifier,
        Ensemble(tuple(members), selection.temperature, validation),
        bootstrap_score(test, metric, [shares[test_nodes]]),
        _never_predicted(shares, data, metric),
    )


def _never_predicted(probabilities: Tensor, data: Data, metric: Metric) -> str | None:
    """Return a warning about classes that are never predicted."""
    report = report_per_class(count_predictions(probabilities, data), data)
    return never_predicted_warning(report, class_counts(data), metric)


def _load(candidate: Candidate, data: Data, device: str) -> NodeClassifier:
    """Load the run of a candidate on the given split, with its learning curves."""
    classifier = NodeClassifier.load(candidate.folder, device)
    # A training that the time limit has cut is repeated with as many epochs as it had.
    classifier.config_ = candidate.config
    training = candidate.config.training
    record = json.loads((candidate.folder / "run.json").read_text(encoding="utf-8"))["record"]
    criterion = Criterion.of(training.metric, training.select, data)
    curves = candidate.folder / "history.csv"
    classifier.history_ = History.read(curves, criterion, record["seconds"])
    classifier.history_.dead = record["is_dead"]
    return classifier
