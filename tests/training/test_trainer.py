"""The epoch loop, driven by a trainer without a model."""

import time

import torch
from torch import nn

from nfgnn.training.history import History
from nfgnn.training.trainer import Trainer, is_small, one_thread, stored_values, train


class CountingTrainer(Trainer):
    """Two runs: the first stops after ``stop_at`` epochs, the second never does."""

    def __init__(self, stop_at: int, interval: int = 1, done: int = 0) -> None:
        super().__init__()
        self.check_interval = interval
        self.stop_at = stop_at
        self.curves = [History(val_loss=[1.0] * done), History()]
        self.done = done
        self.checks: list[int] = []
        self.finished = False

    @property
    def epochs_done(self) -> int:
        return self.done

    def run_epoch(self) -> None:
        self.curves[0].val_loss.append(1.0)

    def check(self) -> bool:
        self.checks.append(self.curves[0].epochs)
        return self.curves[0].epochs < self.stop_at

    def histories(self) -> list[History]:
        return self.curves

    def finish(self) -> list[History]:
        self.finished = True
        return self.curves


def test_training_ends_when_the_step_has_stopped() -> None:
    trainer = CountingTrainer(stop_at=3)
    first, _ = train(trainer, max_epochs=10)
    assert first.epochs == 3
    assert trainer.finished


def test_training_ends_after_the_last_epoch() -> None:
    first, _ = train(CountingTrainer(stop_at=99), max_epochs=4)
    assert first.epochs == 4


def test_a_step_is_checked_at_its_interval_only() -> None:
    """Reading results back makes a GPU wait, so a run may train a little too long."""
    trainer = CountingTrainer(stop_at=3, interval=5)
    first, _ = train(trainer, max_epochs=20)
    assert trainer.checks == [0, 5]
    assert first.epochs == 5


def test_a_resumed_training_continues_where_it_was() -> None:
    trainer = CountingTrainer(stop_at=99, done=6)
    first, _ = train(trainer, max_epochs=8)
    assert first.epochs == 8
    finished = CountingTrainer(stop_at=6, done=6)
    assert train(finished, max_epochs=8)[0].epochs == 6  # it had stopped before the interruption


def test_the_callback_receives_the_longest_history() -> None:
    seen: list[int] = []
    train(CountingTrainer(stop_at=3), 10, lambda history: seen.append(history.epochs))
    assert seen == [1, 2, 3]


def test_seconds_are_shared_among_the_runs_and_add_up_over_interruptions() -> None:
    trainer = CountingTrainer(stop_at=1)
    trainer.seconds_before = 100.0
    start = time.perf_counter()
    histories = train(trainer, 5)
    elapsed = time.perf_counter() - start
    for history in histories:
        assert 100.0 <= history.seconds <= 100.0 + elapsed + 1.0


def test_threads_are_restored() -> None:
    torch.set_num_threads(2)
    with one_thread():
        assert torch.get_num_threads() == 1
    with one_thread(wanted=False):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 2


def test_work_is_measured_by_stored_values_and_the_widest_layer() -> None:
    dense = torch.zeros(20, 5)
    dense[0, 0] = 1
    assert stored_values(dense) == 100
    assert stored_values(dense.to_sparse_csr()) == 1
    assert is_small(10**6, nn.Linear(5, 100))  # 100 outputs
    assert not is_small(10**7, nn.Linear(5, 100))
