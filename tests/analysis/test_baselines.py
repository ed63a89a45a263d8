"""Scores of the quick models on graphs where features or edges decide the classes."""

import numpy as np
import pytest
import torch
from conftest import random_graph
from helpers.small_graphs import two_way
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from torch import Tensor

from nfgnn.analysis import baselines, cross_validate_baselines
from nfgnn.training import accuracy


def stars(leaves: int) -> tuple[Tensor, Tensor]:
    """Return two stars whose leaves have the class of their centre, and the labels."""
    y = torch.arange(2 * leaves + 2) % 2
    edges = two_way(*((node % 2, node) for node in range(2, len(y))))
    return edges, torch.cat([torch.tensor([-1, -1]), y[2:]])


def test_edges_that_decide_the_class_and_features_that_do_not() -> None:
    edges, y = stars(20)
    found = cross_validate_baselines(torch.ones(len(y), 3), edges, y, accuracy)
    assert found is not None
    assert (found.nodes, found.folds, found.constant) == (40, 5, 0.5)
    assert found.edges == [1.0] * 5
    # One prediction for all nodes: half of the nodes of every stratified fold.
    assert found.features == [0.5] * 5


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_features_that_decide_the_class(layout: str) -> None:
    y = torch.arange(60) % 3
    x = torch.eye(3)[y]
    if layout == "sparse":
        x = x.to_sparse_csr()
    nothing = torch.zeros(2, 0, dtype=torch.long)
    found = cross_validate_baselines(x, nothing, y, accuracy)
    assert found is not None
    assert found.features == [1.0] * 5
    assert found.edges is None
    assert found.constant == pytest.approx(1 / 3)


def test_link_is_a_logistic_regression_on_the_adjacency_matrix() -> None:
    edges = random_graph(60, 0.15, 3)
    y = torch.randint(0, 3, (60,), generator=torch.Generator().manual_seed(1))
    found = cross_validate_baselines(None, edges, y, accuracy)
    assert found is not None
    assert found.features is None
    dense = np.zeros((60, 60))
    dense[edges[0], edges[1]] = 1
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    expected = cross_val_score(LogisticRegression(), dense, y.numpy(), cv=folds)
    assert found.edges == pytest.approx(expected.tolist())


def test_large_graphs_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    edges, y = stars(50)
    monkeypatch.setattr(baselines, "_MAX_NODES", 30)
    monkeypatch.setattr(baselines, "_MAX_COLUMNS", 1)
    first = cross_validate_baselines(None, edges, y, accuracy)
    assert first is not None
    assert first.nodes == 30
    assert first.edges == [1.0] * 5  # one of the two centres suffices
    assert first == cross_validate_baselines(None, edges, y, accuracy)
    # Many features: the limit of the entries decides.
    monkeypatch.setattr(baselines, "_LEAST_NODES", 20)
    monkeypatch.setattr(baselines, "_MAX_ENTRIES", 2000)
    wide = cross_validate_baselines(torch.ones(len(y), 800), edges, y, accuracy)
    assert wide is not None
    assert wide.nodes == 20


def test_needs_two_nodes_of_two_classes() -> None:
    edges, _ = stars(2)
    x = torch.eye(6)
    assert cross_validate_baselines(x, edges, torch.tensor([0, 0, 0, 0, 1, -1]), accuracy) is None
    found = cross_validate_baselines(x, edges, torch.tensor([0, 0, 0, 1, 1, 2]), accuracy)
    assert found is not None
    assert found.folds == 2
    assert found.edges is not None
    assert all(0 <= score <= 1 for score in found.edges)
