"""Runs as tasks of a Ray cluster."""

import math
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import torch

from nfgnn import plugins
from nfgnn.errors import UserError
from nfgnn.ray_cluster import ray_cluster
from nfgnn.training.execution import Batch, Executor, OnBatchEpoch, Work
from nfgnn.training.executors.graph_pickle import dumps_without_graphs, loads_with_graphs
from nfgnn.training.executors.time_limit import TimeLimit
from nfgnn.training.history import History
from nfgnn.training.run import Failure, Graph

_MAX_RESTARTS = 3
_LATE_SECONDS = 30.0
"""Runs that end so long after the time limit are given up: their node is overloaded or lost."""
_MAX_GRAPHS = 3
_worker_graphs: dict[str, Graph] = {}


class RayTasks(Executor):
    """Train every batch as a task, which is restarted if its worker or node dies.

    A task that dies again after three restarts becomes a failure of its runs. Raw files must lie at
    the same place on all nodes, but graphs in memory are sent to them. Only the calling process
    stores results. The executor stays connected until it is closed.

    Args:
        address: of a cluster; by default ``$RAY_ADDRESS``, else a cluster is started and stopped.
        say: receives a line that describes the cluster.
        workers: most tasks at the same time, and number of CPUs of a cluster that is started.
        limit: when trainings end early, and which batches are not started. The clocks of the nodes
            must agree.
        whole_nodes: give all CPUs of a node to each task instead of one.

    Example:
        >>> with RayTasks("head:6379", print) as cluster:                    # doctest: +SKIP
        ...     execute(specs, results, cluster, progress)
    """

    is_local: ClassVar[bool] = False

    def __init__(
        self,
        address: str | None,
        say: Callable[[str], None],
        workers: int | None = None,
        limit: TimeLimit | None = None,
        whole_nodes: bool = False,
    ) -> None:
        self.address = address
        self.say = say
        self.workers = workers
        self.limit = limit or TimeLimit()
        self.whole_nodes = whole_nodes
        self._connection = ExitStack()
        self._ray: ModuleType | None = None
        self._graphs: dict[Graph, Any] = {}

    def start(self) -> None:
        """Connect to the cluster."""
        self._connected()

    def close(self) -> None:
        """Disconnect, and stop a cluster that was started."""
        self._ray = None
        self._graphs.clear()
        self._connection.close()

    def capacity(self, device: str) -> int:
        """Return how many tasks the cluster can run at the same time."""
        options = self._task_options(device)
        count = 0
        for resources in self._nodes():
            if options["num_gpus"]:
                count += int(resources.get("GPU", 0))
            else:
                count += int(resources.get("CPU", 0) // options["num_cpus"])
        count = max(1, count)
        return min(count, self.workers or count)

    def run(
        self, batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch
    ) -> Iterator[tuple[Batch, list[Any | Failure]]]:
        if any(batch[0].timed for batch in batches):
            raise UserError("times are measured on this machine: leave out --engine ray")
        if not batches:
            return
        ray = self._connected()
        options = self._task_options(work.device)
        task = ray.remote(**options)(_run_batch)
        waiting = [_Attempt(batch) for batch in batches]
        running: dict[Any, _Attempt] = {}
        try:
            while waiting or running:
                # Waiting tasks let a cluster grow. With a time limit there are none, because
                # whether a batch can end in time is decided when a worker is free for it.
                most = self.workers or len(batches)
                if self.limit.end < math.inf:
                    most = self.capacity(work.device)
                while waiting and len(running) < most:
                    attempt = waiting.pop(0)
                    if self.limit.may_start(attempt.batch):
                        running[self._submit(task, attempt.batch, work, options)] = attempt
                if not running:
                    continue
                ready, _ = ray.wait(list(running), timeout=self._seconds_to_wait())
                if not ready:
                    return
                for reference in ready:
                    attempt = running.pop(reference)
                    outcomes = _result(ray, reference)
                    if outcomes is not None:
                        yield attempt.batch, outcomes
                    elif attempt.restarts < _MAX_RESTARTS:
                        waiting.insert(0, _Attempt(attempt.batch, attempt.restarts + 1))
                    else:
                        yield attempt.batch, [Failure(spec, _DIED) for spec in attempt.batch]
        finally:
            # After an error the connection may be closed before this generator is.
            if ray.is_initialized():
                for reference in running:
                    ray.cancel(reference, force=True)

    def _connected(self) -> ModuleType:
        if self._ray is None:
            cluster = ray_cluster(self.address, self.say, self.workers)
            self._ray = self._connection.enter_context(cluster)
        return self._ray

    def _nodes(self) -> list[dict[str, float]]:
        """Return the resources of every node that can run tasks."""
        nodes = [node["Resources"] for node in self._connected().nodes() if node["Alive"]]
        return [resources for resources in nodes if resources.get("CPU", 0) >= 1]

    def _task_options(self, device: str) -> dict[str, int]:
        cpus = 1
        if self.whole_nodes:
            cpus = int(min((resources["CPU"] for resources in self._nodes()), default=1))
        gpu = device != "cpu" and self._connected().cluster_resources().get("GPU", 0) >= 1
        # Restarts are counted here, because Ray repeats without end what the memory does not hold.
        return {"max_retries": 0, "num_cpus": cpus, "num_gpus": 1 if gpu else 0}

    def _submit(self, task: Any, batch: Batch, work: Work, options: dict[str, int]) -> Any:
        """Start a task and return the reference to its result."""
        graphs = [spec.graph for spec in batch if spec.graph.in_memory is not None]
        references = {graph: self._graph_reference(graph) for graph in graphs}
        names = {graph: reference.hex() for graph, reference in references.items()}
        given = _TaskSettings(
            threads=options["num_cpus"],
            # Every machine has another `time.monotonic`.
            end=self.limit.end - time.monotonic() + time.time(),
            longest=self.limit.longest,
            imports=tuple(plugins.requested_imports()),
        )
        packed = dumps_without_graphs((batch, work), names)
        return task.remote(packed, given, list(names.values()), *references.values())

    def _graph_reference(self, graph: Graph) -> Any:
        """Return the reference to a pickled graph, which every node receives once."""
        if graph not in self._graphs:
            # Workers read an array in the shared memory of their node without a copy.
            packed = np.frombuffer(pickle.dumps(graph, pickle.HIGHEST_PROTOCOL), dtype=np.uint8)
            self._graphs[graph] = self._connected().put(packed)
        return self._graphs[graph]

    def _seconds_to_wait(self) -> float | None:
        if self.limit.end == math.inf:
            return None
        return max(0.0, self.limit.end - time.monotonic()) + _LATE_SECONDS


_DIED = f"its worker died {_MAX_RESTARTS + 1} times, possibly out of memory"


@dataclass(frozen=True)
class _Attempt:
    batch: Batch
    restarts: int = 0


@dataclass(frozen=True)
class _TaskSettings:
    """What a task needs to know besides its runs."""

    threads: int
    end: float
    """When trainings end, by the clock of :func:`time.time`."""
    longest: float
    imports: tuple[str, ...]
    """Modules of ``--import``."""


def _result(ray: ModuleType, reference: Any) -> list[Any | Failure] | None:
    """Return the result of a task, ``None`` if its worker or node has died."""
    errors = ray.exceptions
    died = (
        errors.WorkerCrashedError,
        errors.NodeDiedError,
        errors.ObjectLostError,
        errors.OutOfMemoryError,
    )
    try:
        outcomes: list[Any | Failure] = ray.get(reference)
    except died:
        return None
    except errors.RayTaskError as error:
        if isinstance(error.cause, UserError):
            raise error.cause from None
        raise
    return outcomes


def _run_batch(
    packed: bytes, given: _TaskSettings, names: Sequence[str], *graphs: Any
) -> list[Any | Failure]:
    """Run a batch in a worker."""
    torch.set_num_threads(given.threads)
    if given.imports:
        plugins.import_modules(given.imports)
    found = {name: _worker_graph(name, graph) for name, graph in zip(names, graphs)}
    batch, work = loads_with_graphs(packed, found)
    limit = TimeLimit(given.end - time.time() + time.monotonic(), given.longest).from_now()

    def on_epoch(history: History) -> None:
        limit.check()

    outcomes: list[Any | Failure] = work(batch, on_epoch)
    return outcomes


def _worker_graph(name: str, packed: Any) -> Graph:
    """Return a graph, unpickled if this worker has not seen it lately."""
    if name not in _worker_graphs:
        while len(_worker_graphs) >= _MAX_GRAPHS:
            del _worker_graphs[next(iter(_worker_graphs))]
        _worker_graphs[name] = pickle.loads(packed)
    return _worker_graphs[name]
