"""Execute runs: everything that trains is a caller of :func:`execute`.

``train``, ``tune``, ``reproduce``, the figures and the studies build run specifications, choose
where results go (:class:`Results`) and where runs execute (:class:`Executor`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.progress import Progress
from nfgnn.training import inputs
from nfgnn.training.batched import max_batched_runs
from nfgnn.training.device import resolve_device
from nfgnn.training.history import History, OnEpoch
from nfgnn.training.run import NUMERIC_SETTINGS, Failure, RunResult, RunSpec, train_runs

_BASE_COST = 5000.0  # of a run, in nodes and edges: an epoch on a tiny graph is not free either


class Results(ABC):
    """Where the results of runs go: a run folder, a database of records, or memory.

    A result is packed in the process that trained it and stored in the process that called
    :func:`execute`. Weights therefore never travel between processes.
    """

    @abstractmethod
    def missing(self, specs: Sequence[RunSpec]) -> list[RunSpec]:
        """Return the runs that have no result yet."""

    @abstractmethod
    def pack(self, result: RunResult) -> Any:
        """Reduce a result to what :meth:`store` needs."""

    @abstractmethod
    def store(self, spec: RunSpec, packed: Any) -> str:
        """Store a packed result and return one line that reports it."""

    def checkpoint(self, spec: RunSpec) -> Path | None:
        """Return the checkpoint file of an unfinished mini-batch run."""
        return None

    def in_worker(self) -> "Results":
        """Return what a worker process needs for :meth:`pack`."""
        return self

    def on_other_machine(self) -> "Results":
        """Return what a worker needs that may not share files with this process."""
        return self.in_worker()


@dataclass(frozen=True)
class Work:
    """Train a batch of runs and pack the results. Worker processes receive it by pickling."""

    results: Results
    device: str

    def __call__(
        self, specs: Sequence[RunSpec], on_epoch: OnEpoch | None = None
    ) -> list[Any | Failure]:
        checkpoint = self.results.checkpoint(specs[0])
        outcomes = train_runs(specs, self.device, on_epoch, checkpoint)
        return [
            outcome if isinstance(outcome, Failure) else self.results.pack(outcome)
            for outcome in outcomes
        ]


Batch = tuple[RunSpec, ...]
"""Runs that are trained as one computation."""
OnBatchEpoch = Callable[[Batch, History], None]


class Executor(ABC):
    """Where runs execute.

    As a context manager it is closed at the end. Executors without workers have nothing to close.
    """

    is_local: ClassVar[bool] = True
    """Whether all runs execute on this machine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:  # noqa: B027 - optional
        """Start workers before the first run needs them."""

    def close(self) -> None:  # noqa: B027 - optional
        """Stop the workers."""

    @abstractmethod
    def run(
        self, batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch
    ) -> Iterator[tuple[Batch, list[Any | Failure]]]:
        """Yield every batch with its packed results, in the order in which they finish."""


def execute(
    specs: Sequence[RunSpec],
    results: Results,
    executor: Executor,
    progress: Progress,
    device: str = "auto",
    start_progress: bool = True,
) -> list[Failure]:
    """Train the runs that have no result yet.

    Every result is stored before the next one is waited for, so an interrupted call loses at most
    the runs that were being trained.

    Args:
        specs: the runs. Those of one graph should follow each other, so that few graphs are held
            in memory.
        results: where results go, and which ones exist.
        executor: where the runs execute.
        progress: reports finished runs and the time left.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        start_progress: whether these runs are all the work. Callers that execute several times
            start the display themselves, with one unit of work per run.

    Returns:
        The runs that failed.
    """
    missing = results.missing(specs)
    batches = make_batches(missing, device)
    if start_progress:
        progress.start(sum(map(_cost, batches)), len(missing))
    in_worker = results.in_worker() if executor.is_local else results.on_other_machine()
    work = Work(in_worker, device)

    def on_epoch(batch: Batch, history: History) -> None:
        progress.status(f"{_batch_label(batch)}: {_epoch_status(batch[0], history)}")

    failures = []
    for batch, outcomes in executor.run(batches, work, on_epoch):
        line = ""
        for spec, outcome in zip(batch, outcomes):
            if isinstance(outcome, Failure):
                failures.append(outcome)
            else:
                line = results.store(spec, outcome)
                if line:
                    progress.say(line)
        # The work in `progress` is counted in the units of whoever started it.
        cost = _cost(batch) if start_progress else len(batch)
        progress.advance(cost, _batch_label(batch), len(batch), plain=not line)
    return failures


def make_batches(specs: Sequence[RunSpec], device: str) -> list[Batch]:
    """Group runs that the device can train as one computation.

    On a CPU every run is a batch of its own. The batches keep the order of their first runs.
    """
    groups: dict[Any, list[int]] = {}
    for index, spec in enumerate(specs):
        groups.setdefault(_batch_key(spec), []).append(index)
    batches: list[list[int]] = []
    for indices in groups.values():
        first = specs[indices[0]]
        # A timed run has the device to itself.
        size = 1 if first.timed else batch_size(first, device)
        batches += [indices[i : i + size] for i in range(0, len(indices), size)]
    batches.sort()  # by the first run, so that runs of one graph stay together
    return [tuple(specs[i] for i in batch) for batch in batches]


def batch_size(spec: RunSpec, device: str) -> int:
    """Return how many runs like this one are trained as one computation on a device."""
    resolved = resolve_device(device)
    if resolved.type == "cpu" or spec.protocol == "inductive":
        return 1
    data = spec.graph.data
    if inputs.store_of(data) is not None or spec.config.training.partitions:
        return 1
    # Only what a forward pass reads goes to the device.
    edges = Data(x=data.x, edge_index=data.edge_index, edge_weight=data.get("edge_weight"))
    module = spec.config.build(*inputs.sizes(data)).to(resolved)
    return max_batched_runs(module, edges.to(resolved), resolved)


def _batch_key(spec: RunSpec) -> tuple[Any, ...]:
    """Return what the runs of a batch must have in common."""
    settings = spec.config.to_dict().items()
    shape = tuple((key, value) for key, value in settings if key not in NUMERIC_SETTINGS)
    return (spec.graph, spec.protocol, spec.timed, shape)


def _batch_label(batch: Batch) -> str:
    if len(batch) == 1:
        return batch[0].label
    return f"{batch[0].label} and {len(batch) - 1} more"


def _epoch_status(spec: RunSpec, history: History) -> str:
    metric = history.criterion.metric
    title = metric.title if history.criterion.has_curve else "acc"
    return (
        f"epoch {history.epochs}/{spec.config.training.epochs}  "
        f"loss {history.train_loss[-1]:.3f}  val loss {history.val_loss[-1]:.3f}  "
        f"val {title} {metric.shown(history.scores[-1], 1)}"
    )


def _cost(batch: Batch) -> float:
    """Return the approximate work of a batch, for the estimate of the time left."""
    data = batch[0].graph.data
    edges = 0 if inputs.store_of(data) is not None else int(data.num_edges)
    return len(batch) * (_BASE_COST + int(data.num_nodes) + edges)


def raise_first(failures: Sequence[Failure]) -> None:
    """Raise the first failure as a :class:`~nfgnn.errors.UserError`."""
    if failures:
        raise UserError(failures[0].message)
