"""An ensemble of runs that differ in their seeds only."""

from collections.abc import Sequence

from torch_geometric.data import Data

from nfgnn.auto.ensemble_classifier import EnsembleClassifier, FittedMember
from nfgnn.errors import UserError
from nfgnn.training import NodeClassifier, RunConfig, fit_together, resolve_device


def fit_seed_ensemble(
    config: RunConfig,
    data: Data,
    seeds: Sequence[int],
    device: str = "auto",
) -> EnsembleClassifier:
    """Train a configuration once per seed on one split, and average the probabilities.

    The runs differ in their initial weights and in their dropout. Each keeps the weights of its own
    best validation epoch. All runs have equal weight in the mean. A GPU trains them as one
    computation.

    Args:
        config: model and settings of all runs.
        data: a graph with ``train_mask`` and ``val_mask``.
        seeds: one per run.
        device: where they are trained.
    """
    if not seeds:
        raise UserError("an ensemble needs at least one seed")
    classifiers = [NodeClassifier.from_config(config, seed, device) for seed in seeds]
    if resolve_device(device).type == "cpu":
        # Many runs as one computation take longer on a CPU than one after the other.
        for classifier in classifiers:
            classifier.fit(data)
    else:
        fit_together(classifiers, [data] * len(classifiers))
    members = []
    for classifier in classifiers:
        classifier.history_.raise_if_diverged()
        name = f"{config.model}, seed {classifier.seed}"
        members.append(FittedMember(name, 1 / len(classifiers), 1.0, classifier))
    return EnsembleClassifier(members, temperature=1.0)
