"""Dead runs: recognised without false alarms, restarted, marked in every kind of result."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.progress import Progress
from nfgnn.store import stream_seed
from nfgnn.training import (
    Graph,
    InProcess,
    Record,
    RecordResults,
    RunConfig,
    RunResult,
    RunSpec,
    TrainingConfig,
    execute,
    export_records,
    fit_together,
    open_records,
)
from nfgnn.training.criterion import Criterion
from nfgnn.training.dead_runs import (
    constant_loss,
    highest_chance_accuracy,
    is_dead,
    least_loss,
)
from nfgnn.training.history import History
from nfgnn.training.metrics import ROC_AUC

EPOCHS = 200
FAST = {"epochs": 120, "features": "raw"}


def labelled(train: list[int], val: list[int]) -> Data:
    """Return labels and masks, without edges."""
    mask = torch.arange(len(train) + len(val)) < len(train)
    return Data(y=torch.tensor(train + val), train_mask=mask, val_mask=~mask, num_classes=4)


def curves(train_loss: float, val_accuracy: float) -> History:
    """Return a history whose best training loss and validation accuracy are these."""
    flat = [1.386] * (EPOCHS - 1)
    return History([*flat, train_loss], [1.386] * EPOCHS, [0.2] * (EPOCHS - 1) + [val_accuracy])


BALANCED = labelled([0, 1, 2, 3] * 25, [0, 1, 2, 3] * 25)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_constant_loss_is_the_least_loss_of_equal_logits(smoothing: float) -> None:
    data = labelled([0] * 7 + [1] * 2 + [3], [0])
    logits = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=200, tolerance_grad=1e-12)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        rows = logits.expand(10, 4)
        value = F.cross_entropy(rows, data.y[data.train_mask], label_smoothing=smoothing)
        value.backward()
        return value

    optimizer.step(loss)
    assert constant_loss(data, smoothing) == pytest.approx(float(loss().detach()), abs=1e-4)


def test_label_smoothing_bounds_the_loss_from_below() -> None:
    """A smoothing of 0.8 leaves little between chance and the least loss."""
    smoothing = 0.8
    target = torch.tensor([0.4, 0.2, 0.2, 0.2], dtype=torch.float64)
    floor = F.cross_entropy(target.log()[None], torch.tensor([0]), label_smoothing=smoothing)
    assert least_loss(4, smoothing) == pytest.approx(float(floor))
    assert least_loss(4, 0.0) == 0
    config = TrainingConfig(label_smoothing=smoothing)
    chance = constant_loss(BALANCED, smoothing)
    halfway = (chance + float(floor)) / 2
    assert halfway / chance > 0.97
    assert not is_dead(curves(halfway, 0.3), BALANCED, config)
    assert is_dead(curves(chance - 1e-4, 0.3), BALANCED, config)


def test_highest_chance_accuracy_by_hand() -> None:
    data = labelled([0], [0] * 64 + [1] * 36)
    assert highest_chance_accuracy(data) == pytest.approx(0.64 + 3 * 0.048)


def test_a_run_at_chance_is_dead_and_a_better_one_is_not() -> None:
    config = TrainingConfig()
    assert is_dead(curves(1.38, 0.30), BALANCED, config)
    assert not is_dead(curves(1.38, 0.45), BALANCED, config)  # above 0.25 + 3 * 0.0433
    assert not is_dead(curves(1.0, 0.30), BALANCED, config)  # memorises labels that are noise


def test_small_validation_sets_and_a_large_class_raise_no_alarm() -> None:
    config = TrainingConfig()
    five_nodes = labelled([0, 1, 2, 3] * 2, [0, 0, 0, 1, 2])
    assert not is_dead(curves(0.4, 0.6), five_nodes, config)
    fraud = labelled([0] * 97 + [1] * 3, [0] * 97 + [1] * 3)
    assert constant_loss(fraud) == pytest.approx(0.1347, abs=1e-4)
    assert not is_dead(curves(0.11, 0.97), fraud, config)
    assert is_dead(curves(0.134, 0.97), fraud, config)


def test_a_rare_class_that_is_ranked_well_is_no_alarm() -> None:
    data = labelled([0] * 80 + [1] * 20, [0] * 80 + [1] * 20)
    data.num_classes = 2
    at_chance = curves(0.5, 0.8)
    at_chance.criterion = Criterion(ROC_AUC, by_metric=True)
    # The ranks of 20 of 100 nodes have a standard error of sqrt(101 / (12 · 20 · 80)) = 0.0725.
    at_chance.val_metric = [0.5] * (EPOCHS - 1) + [0.5 + 2.9 * 0.0725]
    assert is_dead(at_chance, data, TrainingConfig())
    ranked = replace(at_chance, val_metric=[0.5] * (EPOCHS - 1) + [0.5 + 3.1 * 0.0725])
    assert not is_dead(ranked, data, TrainingConfig())


def test_the_constant_loss_of_balanced_classes_is_that_of_equal_shares() -> None:
    data = labelled([0] * 7 + [1] * 2 + [3], [0])
    assert constant_loss(data, balanced=True) == pytest.approx(math.log(3))


def test_few_updates_are_not_judged() -> None:
    short = History([1.386] * 20, [1.386] * 20, [0.25] * 20)
    assert not is_dead(short, BALANCED, TrainingConfig())
    # Ten batches per epoch: 200 updates.
    assert is_dead(short, BALANCED, TrainingConfig(batch_size=10))
    assert is_dead(short, BALANCED, TrainingConfig(partitions=40, partitions_per_batch=4))


def test_a_diverged_run_is_dead() -> None:
    nan = float("nan")
    assert is_dead(History([nan] * 9, [nan] * 9, [0.25] * 9), BALANCED, TrainingConfig())


def test_memorised_random_labels_are_not_dead() -> None:
    generator = torch.Generator().manual_seed(0)
    data = load_dataset("mixed", num_nodes=200)
    data.y = torch.randint(0, 4, (200,), generator=generator)
    data = split(data, "full", 0)
    history = NodeClassifier("MLP", preset="none", features="raw").fit(data).history_
    assert max(history.val_accuracy) < highest_chance_accuracy(data)
    assert (history.dead, history.restarts) == (False, 0)


class DeadStart(NodeClassifier):
    """All weights of the first start are 0, so every gradient but that of a bias is 0."""

    def initialise(self, data: Data, restart: int = 0) -> None:
        super().initialise(data, restart)
        if restart == 0:
            with torch.no_grad():
                for parameter in self.model_.parameters():
                    parameter.zero_()


@pytest.fixture(scope="module")
def data() -> Data:
    return split(load_dataset("mixed", num_nodes=200, seed=1), "full", 0)


def same_weights(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values()))


def test_a_dead_start_is_restarted_with_the_next_seed(data: Data) -> None:
    restarted = DeadStart("MLP", seed=3, **FAST).fit(data)
    assert (restarted.history_.dead, restarted.history_.restarts) == (False, 1)
    fresh = NodeClassifier("MLP", seed=stream_seed(3, 1), **FAST).fit(data)
    assert fresh.history_.restarts == 0
    assert same_weights(restarted.model_, fresh.model_)
    without = DeadStart("MLP", seed=3, restarts=0, **FAST).fit(data)
    assert (without.history_.dead, without.history_.restarts) == (True, 0)


def test_batched_runs_restart_their_dead_members_only(data: Data) -> None:
    settings = {**FAST, "dropout": 0.0}
    kinds = (NodeClassifier, DeadStart, DeadStart)
    batch = [kind("MLP", seed=i, **settings) for i, kind in enumerate(kinds)]
    fit_together(batch, [data] * 3)
    assert [member.history_.restarts for member in batch] == [0, 1, 1]
    assert not any(member.history_.dead for member in batch)
    for i, kind in enumerate(kinds):
        alone = kind("MLP", seed=i, **settings).fit(data)
        torch.testing.assert_close(
            batch[i].predict_proba(data), alone.predict_proba(data), rtol=1e-3, atol=1e-4
        )


def test_mini_batches_resume_a_restarted_run(data: Data, tmp_path: Path) -> None:
    settings = {**FAST, "K": 3, "epochs": 30, "batch_size": 20}
    expected = DeadStart("ScalableNFGNN", **settings).fit(data)
    assert expected.history_.restarts == 1
    checkpoint = tmp_path / "seed-0.checkpoint"

    class Interrupted(Exception):
        pass

    def interrupt(history: History) -> None:
        restarted = (tmp_path / "seed-0.restart-1.checkpoint").exists()
        if restarted and history.epochs == 15:
            raise Interrupted

    with pytest.raises(Interrupted):
        DeadStart("ScalableNFGNN", **settings).fit(data, interrupt, checkpoint)
    resumed = DeadStart("ScalableNFGNN", **settings).fit(data, None, checkpoint)
    assert resumed.history_.restarts == 1
    assert resumed.history_.val_loss == expected.history_.val_loss
    assert same_weights(resumed.model_, expected.model_)


def test_a_diverged_run_is_restarted(data: Data) -> None:
    class Diverging(NodeClassifier):
        def initialise(self, data: Data, restart: int = 0) -> None:
            super().initialise(data, restart)
            if restart == 0:
                nn.init.constant_(next(self.model_.parameters()), float("nan"))

    restarted = Diverging("MLP", **FAST).fit(data)
    assert (restarted.history_.dead, restarted.history_.restarts) == (False, 1)


def test_records_hold_restarts_and_dead_runs(data: Data, tmp_path: Path) -> None:
    spec = RunSpec(Graph.of(data), "full", 0, RunConfig.resolve("MLP", {}, None, None, "none"))
    lucky = DeadStart("MLP", **FAST).fit(data)
    unlucky = NodeClassifier("MLP", **{**FAST, "lr": 0.0}).fit(data)
    healthy = NodeClassifier("MLP", **FAST).fit(data)
    runs = [Record.of(RunResult(spec, run, data)) for run in (lucky, unlucky, healthy)]
    assert [(run.metrics.get("restarts"), run.dead) for run in runs] == [
        (1, False),
        (1, True),
        (None, False),
    ]
    with open_records(tmp_path / "records.sqlite") as records:
        records.add([runs[1]])
        export_records(records, tmp_path / "exported.csv")
    with open_records(tmp_path / "exported.sqlite") as again:
        assert [run.metrics for run in again.all()] == [runs[1].metrics]


def test_runs_that_stay_dead_are_results(data: Data, tmp_path: Path) -> None:
    settings = {**FAST, "lr": 0.0}
    config = RunConfig.resolve("MLP", settings, None, None, "none")
    specs = [RunSpec(Graph.of(data), "full", seed, config) for seed in (0, 1)]
    with open_records(tmp_path / "records.sqlite") as records, Progress("", quiet=True) as progress:
        assert execute(specs, RecordResults(records), InProcess(), progress, "cpu") == []
        assert [run.metrics["dead"] for run in records.all()] == [1, 1]
