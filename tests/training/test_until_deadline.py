"""The executor with a time limit."""

from typing import Any

from nfgnn.training import Failure, History, RunConfig, RunSpec, UntilDeadline
from nfgnn.training.execution import Batch
from nfgnn.training.run import Graph

CONFIG = RunConfig.resolve("MLP", {}, None, None, "none")


def specs(count: int) -> Batch:
    graph = Graph.named("karate")
    return tuple(RunSpec(graph, "full", seed, CONFIG) for seed in range(count))


class Work:
    """Stands in for training: batches that are too large fail."""

    def __init__(self, largest: int = 100, executor: UntilDeadline | None = None) -> None:
        self.largest = largest
        self.executor = executor
        self.sizes: list[int] = []

    def __call__(self, batch: Batch, on_epoch: Any) -> list[Any]:
        self.sizes.append(len(batch))
        if self.executor is not None:
            self.executor.end = 0.0
            on_epoch(History())
        if len(batch) > self.largest:
            return [Failure(spec, "does not fit") for spec in batch]
        return [spec.seed for spec in batch]


def finished(executor: UntilDeadline, batches: list[Batch], work: Any) -> list[int]:
    done = executor.run(batches, work, lambda batch, history: None)
    return [outcome for _, outcomes in done for outcome in outcomes]


def test_large_batches_are_divided() -> None:
    work = Work()
    assert finished(UntilDeadline(100, max_batch=4), [specs(10)], work) == list(range(10))
    assert work.sizes == [4, 4, 2]


def test_runs_that_fail_together_are_trained_alone() -> None:
    work = Work(largest=1)
    assert finished(UntilDeadline(100), [specs(3)], work) == [0, 1, 2]
    assert work.sizes == [3, 1, 1, 1]
    (failure,) = finished(UntilDeadline(100), [specs(1)], Work(largest=0))
    assert isinstance(failure, Failure)


def test_nothing_starts_after_the_time_limit() -> None:
    work = Work()
    assert finished(UntilDeadline(0), [specs(3)], work) == []
    assert work.sizes == []


def test_a_training_ends_at_the_time_limit() -> None:
    executor = UntilDeadline(100, max_batch=1)
    work = Work(executor=executor)
    assert finished(executor, [specs(3)], work) == []
    assert work.sizes == [1]
