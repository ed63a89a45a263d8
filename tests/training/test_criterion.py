"""What selects the epoch: one rule in single, batched and mini-batch training."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nfgnn import load_dataset, split
from nfgnn.errors import UserError
from nfgnn.nn import PolyGNN, ScalableNFGNN
from nfgnn.store import MemoryRows
from nfgnn.training import METRICS, History, TrainingConfig, fit, fit_rows
from nfgnn.training.batched import Member, fit_batched
from nfgnn.training.criterion import Criterion, resolve_select
from nfgnn.training.minibatch import RowTask
from nfgnn.training.stopping import BatchedStopping, BestWeights, should_stop

ROC_AUC = Criterion(METRICS["roc_auc"], by_metric=True)
LOG_LOSS = Criterion(METRICS["log_loss"], by_metric=True)


def test_the_cost_is_the_loss_or_the_metric() -> None:
    assert Criterion(METRICS["roc_auc"]).cost(0.7, 0.9) == 0.7
    assert ROC_AUC.cost(0.7, 0.9) == -0.9
    assert LOG_LOSS.cost(0.7, 0.6) == 0.6
    for loss in (math.nan, math.inf):
        assert math.isnan(ROC_AUC.cost(loss, 0.9))


def test_the_paper_s_rule_applies_where_the_metric_is_accuracy() -> None:
    assert resolve_select("auto", METRICS["accuracy"]) == "loss"
    assert resolve_select("auto", METRICS["macro_f1"]) == "metric"
    assert resolve_select("metric", METRICS["accuracy"]) == "metric"
    assert resolve_select("loss", METRICS["macro_f1"]) == "loss"


def test_the_best_epoch_has_the_best_metric_and_of_equal_ones_the_least_loss() -> None:
    history = History(
        val_loss=[math.nan, 1.0, 3.0, 2.0, 2.0, 0.5],
        val_metric=[1.0, 0.5, 0.9, 0.9, 0.9, 0.8],
        criterion=ROC_AUC,
    )
    assert history.best_epoch == 3
    assert replace(history, criterion=LOG_LOSS).best_epoch == 1
    assert replace(history, criterion=Criterion(METRICS["roc_auc"])).best_epoch == 5


@pytest.mark.parametrize("criterion", [ROC_AUC, LOG_LOSS, Criterion(by_metric=True), Criterion()])
def test_batched_runs_follow_the_rule_of_single_runs(criterion: Criterion) -> None:
    """Losses and metrics with few distinct values, so that many epochs are tied."""
    epochs = 40
    rng = torch.Generator().manual_seed(1)
    losses = torch.randint(20, (epochs, 8), generator=rng).double() / 20
    metrics = torch.randint(6, (epochs, 8), generator=rng).double() / 6
    losses[3:6, 2] = torch.nan
    weights = torch.zeros(8, 1, dtype=torch.float64)
    batched = BatchedStopping(weights, epochs, 5, criterion)
    for epoch in range(epochs + 1):
        # The pass before epoch t + 1 evaluates the weights after epoch t.
        weights.fill_(epoch)
        scores = [metrics[epoch - 1]] * (2 if criterion.has_curve else 1)
        batched.record(weights, losses[epoch - 1], losses[epoch - 1], *scores)
        batched.epoch += 1
    for run, history in enumerate(batched.histories()):
        expected, kept = _single_run(losses[:, run].tolist(), metrics[:, run].tolist(), criterion)
        assert history.epochs == expected.epochs
        assert history.scores == expected.scores
        assert history.best_epoch == expected.best_epoch
        assert batched.best[run, 0] == 1 + kept == 1 + expected.best_epoch


def _single_run(
    losses: list[float], metrics: list[float], criterion: Criterion
) -> tuple[History, int]:
    """Return the history until the run stops, and the epoch whose weights it keeps."""
    history = History(criterion=criterion)
    model = nn.Linear(1, 1)
    best = BestWeights(model)
    for epoch, (loss, metric) in enumerate(zip(losses, metrics)):
        history.val_loss.append(loss)
        history.scores.append(metric)
        nn.init.constant_(model.weight, epoch)
        costs = history.costs()
        best.update(costs[-1], loss)
        if should_stop(costs, 5):
            break
    best.restore()
    return history, int(model.weight.item())


def _rare_class(nodes: int = 200) -> Data:
    """Return a graph with 15 % of class 1, which a line separates with some errors."""
    data = load_dataset("mixed", num_nodes=nodes, num_features=4)
    rng = torch.Generator().manual_seed(0)
    data.y = (torch.rand(nodes, generator=rng) < 0.15).long()
    noise = torch.randn(nodes, generator=rng)
    data.x[:, 0] = data.y + noise
    data.num_classes = 2
    data.class_names = ["0", "1"]
    data.metric = "auto"
    return split(data, "stratified", seed=0)


CONFIG = TrainingConfig(epochs=30, patience=8, lr=0.05, batch_size=32)


class Line(nn.Module):
    """Logistic regression."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)
        nn.init.constant_(self.linear.weight, 0.1)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor, *_: Tensor) -> Tensor:
        logits: Tensor = self.linear(x)
        return logits


@pytest.mark.parametrize("name", METRICS)
def test_training_keeps_the_epoch_of_the_best_validation_metric(name: str) -> None:
    data = _rare_class()
    metric = METRICS[name]
    config = replace(CONFIG, metric=name, select="metric", lr=0.3)
    model = Line()
    history = fit(model, data, config)
    val = data.val_mask
    with torch.no_grad():
        kept = metric.compute(model(data.x)[val].softmax(-1), data.y[val], 2)
    best = max(history.scores) if metric.greater_is_better else min(history.scores)
    assert kept == pytest.approx(best, abs=1e-6)
    assert history.scores[history.best_epoch] == best
    assert bool(history.val_metric) == (name != "accuracy")


@pytest.mark.parametrize("name", ["roc_auc", "macro_f1", "log_loss"])
@pytest.mark.parametrize("runs", [1, 3])
def test_batched_training_equals_training_one_by_one(name: str, runs: int) -> None:
    data = _rare_class()
    config = replace(CONFIG, metric=name, class_weight="balanced")
    splits = [split(data, "stratified", seed) for seed in range(runs)]
    # Masks of different sizes.
    splits[0].val_mask[splits[0].val_mask.nonzero()[:4, 0]] = False
    models = [_global_filter() for _ in splits]
    members = [Member(m, s.train_mask, s.val_mask, config) for m, s in zip(models, splits)]
    batched = fit_batched(members, data)
    for masks, model, found in zip(splits, models, batched):
        alone = _global_filter()
        expected = fit(alone, masks, config)
        assert found.best_epoch == expected.best_epoch
        torch.testing.assert_close(found.val_metric, expected.val_metric, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(found.train_loss, expected.train_loss, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(model.state_dict(), alone.state_dict(), atol=1e-4, rtol=1e-3)


def _global_filter() -> PolyGNN:
    torch.manual_seed(0)
    return PolyGNN(4, 2, hidden_channels=4, K=1, dropout=0.0)


def _row_task(data: Data) -> tuple[RowTask, ScalableNFGNN]:
    torch.manual_seed(0)
    model = ScalableNFGNN(4, 2, hidden_channels=4, K=1, dropout=0.0)
    source = MemoryRows(model.rows(data.x, data.edge_index))
    train = data.train_mask.nonzero().flatten()
    return RowTask(source, data.y, train, data.val_mask.nonzero().flatten()), model


@pytest.mark.parametrize("name", ["roc_auc", "log_loss"])
def test_mini_batches_keep_the_epoch_of_the_best_validation_metric(name: str) -> None:
    data = _rare_class()
    metric = METRICS[name]
    task, model = _row_task(data)
    config = replace(CONFIG, metric=name, select="metric")
    history = fit_rows(model, task, config, seed=0)
    val = data.val_mask
    with torch.no_grad():
        logits = model.eval()(data.x, data.edge_index)[val]
    kept = metric.compute(logits.softmax(-1), data.y[val], 2)
    best = max(history.scores) if metric.greater_is_better else min(history.scores)
    assert kept == pytest.approx(best, abs=1e-5)


def test_validation_nodes_of_one_class_cannot_select() -> None:
    data = _rare_class()
    data.val_mask &= data.y == 0
    for select in ("auto", "metric"):
        with pytest.raises(UserError, match="ROC-AUC needs nodes of every class"):
            fit(Line(), data, replace(CONFIG, select=select))
    history = fit(Line(), data, replace(CONFIG, select="loss"))
    assert history.best_epoch == history.val_loss.index(min(history.val_loss))
