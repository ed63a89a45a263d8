"""Models that are trained on demand equal those of the classifier."""

import numpy as np
import pytest
import torch

from nfgnn import NodeClassifier, split
from nfgnn.errors import UserError
from nfgnn.paper.figures import FIGURES
from nfgnn.paper.trained_models import TrainedModels, shared_coefficients


def classifier_of(models: TrainedModels, seed: int) -> tuple[NodeClassifier, object]:
    data = split(models.graph("mixed"), "full", seed)
    classifier = NodeClassifier("NFGNN", preset="paper", seed=seed, epochs=8, rank=3)
    return classifier.fit(data), data


def test_a_fit_is_what_the_classifier_gives(models: TrainedModels) -> None:
    classifier, data = classifier_of(models, 1001)
    fit = models.fits("mixed", "NFGNN", rank=3)[1]
    assert fit.accuracy == classifier.score(data)
    assert torch.equal(fit.coefficients, classifier.coefficients(data))


def test_filters_of_nodes_are_those_of_the_classifier(models: TrainedModels) -> None:
    found = FIGURES["node_filters"].rows(models, ["mixed"])["graphs"][0]
    first = models.fits("mixed", "NFGNN", rank=3)[0].seed
    classifier, data = classifier_of(models, first)
    for subset in found["subsets"].values():
        if subset["nodes"]:
            curves = classifier.response(data, subset["nodes"], points=101)[1]
            assert np.allclose(subset["curves"], curves.numpy(), atol=1e-4)


def test_only_node_oriented_filters_have_shared_coefficients(models: TrainedModels) -> None:
    fits = models.fits("mixed", "NFGNN")
    assert shared_coefficients(fits).shape == (2, fits[0].coefficients.shape[1])
    with pytest.raises(UserError, match="shared coefficients"):
        shared_coefficients(models.fits("mixed", "GCN"))


def test_errors_of_the_user_are_raised(models: TrainedModels) -> None:
    with pytest.raises(UserError, match="no setting 'colour'"):
        models.fits("mixed", "GCN", colour="red")
