"""Balanced weights are those of scikit-learn, and the loss is the weighted one of torch."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.utils.class_weight import compute_class_weight
from torch import nn

from nfgnn import load_dataset, split
from nfgnn.nn import ScalableNFGNN, as_node_model
from nfgnn.store import MemoryRows
from nfgnn.training import TrainingConfig, fit, fit_rows
from nfgnn.training.batched import Member, fit_batched
from nfgnn.training.class_weight import balanced_class_weights, balanced_weights
from nfgnn.training.minibatch import RowTask

CONFIG = TrainingConfig(epochs=1, class_weight="balanced", lr=0.0, filter_lr=0.0)


def test_the_rule_is_that_of_scikit_learn() -> None:
    y = torch.tensor([0, 0, 0, 3, 3, 1])
    expected = compute_class_weight("balanced", classes=np.unique(y), y=y.numpy())
    weights = balanced_class_weights(y)
    assert weights[2] == 0
    np.testing.assert_allclose(weights[[0, 1, 3]].numpy(), expected)
    assert balanced_weights(y).mean().item() == pytest.approx(1)


def _weighted_loss(model: nn.Module) -> float:
    """Return torch's weighted cross-entropy of the training nodes."""
    data = DATA
    with torch.no_grad():
        logits = model.eval()(data.x, data.edge_index)[data.train_mask]
    y = data.y[data.train_mask]
    weight = balanced_class_weights(y).float()
    return F.cross_entropy(logits, y, weight=weight).item()


def _rare_classes() -> torch.Tensor:
    rng = torch.Generator().manual_seed(0)
    return (torch.rand(120, generator=rng) ** 4 * 4).long()


DATA = load_dataset("mixed", num_nodes=120, num_features=4)
DATA.y = _rare_classes()
DATA = split(DATA, "stratified", seed=0)


def _model() -> ScalableNFGNN:
    torch.manual_seed(0)
    return ScalableNFGNN(4, 4, hidden_channels=4, K=1, dropout=0.0)


def test_whole_graph_batched_and_mini_batch_training_have_the_weighted_loss() -> None:
    expected = _weighted_loss(_model())
    whole = fit(as_node_model(_model()), DATA, CONFIG)
    members = [Member(_model(), DATA.train_mask, DATA.val_mask, CONFIG) for _ in range(2)]
    batched = fit_batched(members, DATA)
    model = _model()
    source = MemoryRows(model.rows(DATA.x, DATA.edge_index))
    train = DATA.train_mask.nonzero().flatten()
    task = RowTask(source, DATA.y, train, DATA.val_mask.nonzero().flatten())
    rows = fit_rows(model, task, replace(CONFIG, batch_size=16), seed=0)
    for history in (whole, *batched, rows):
        assert history.train_loss[0] == pytest.approx(expected, rel=1e-5)
    plain = fit(as_node_model(_model()), DATA, replace(CONFIG, class_weight="none"))
    assert plain.train_loss[0] != pytest.approx(expected, rel=1e-3)
