"""Worker processes that stay alive for many calls of :func:`~nfgnn.training.execute`."""

import io
import os
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from types import TracebackType
from typing import Any

from nfgnn.training.execution import Batch, Executor, OnBatchEpoch, Work
from nfgnn.training.executors.process_pool import EVENT_SECONDS, send_event, start_worker
from nfgnn.training.executors.time_limit import TimeLimit
from nfgnn.training.history import History
from nfgnn.training.run import Failure, Graph

_GRAPH = "graph"
"""Stands for the graph in pickled work."""
_worker_graph: Graph | None = None


class WorkerPool(Executor):
    """Train the runs of one graph in worker processes, one thread each.

    Workers take seconds to start, so they are started once, and the graph is passed to them once.
    A script that uses it must guard its main part by ``if __name__ == "__main__"``.

    Args:
        graph: the graph of all runs.
        workers: number of processes.
        limit: when trainings end early, and which batches are not started.

    Example:
        >>> with WorkerPool(graph, workers=2) as pool:                       # doctest: +SKIP
        ...     execute(specs, results, pool, progress, "cpu")
    """

    def __init__(self, graph: Graph, workers: int, limit: TimeLimit | None = None) -> None:
        self.graph = graph
        self.workers = workers
        self.limit = limit or TimeLimit()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._pool: ProcessPoolExecutor | None = None
        # Not "fork": the threads of OpenMP do not survive it.
        self._context = get_context("spawn")
        self._events: SimpleQueue[tuple[int, History]] = self._context.SimpleQueue()

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the workers and return at once."""
        if self._pool is not None:
            return
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="nfgnn-")
            graph = pickle.dumps(self.graph, pickle.HIGHEST_PROTOCOL)
            Path(self._folder.name, _GRAPH).write_bytes(graph)
        initial = (os.getpid(), self._events, str(Path(self._folder.name, _GRAPH)))
        self._pool = ProcessPoolExecutor(self.workers, self._context, _start, initial)
        for _ in range(self.workers):
            self._pool.submit(os.getpid)

    def close(self) -> None:
        """Stop the workers."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def run(
        self, batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch
    ) -> Iterator[tuple[Batch, list[Any | Failure]]]:
        waiting = list(range(len(batches)))
        futures: dict[Future[list[Any | Failure]], int] = {}
        while waiting or futures:
            # No queue of submitted work: whether a batch can end in time is decided when a worker
            # is free for it.
            while waiting and len(futures) < self.workers:
                number = waiting.pop(0)
                if self.limit.may_start(batches[number]):
                    futures[self._submit(number, batches[number], work)] = number
            done, _ = wait(futures, EVENT_SECONDS, FIRST_COMPLETED)
            while not self._events.empty():
                number, history = self._events.get()
                on_epoch(batches[number], history)
            for future in done:
                batch = batches[futures.pop(future)]
                yield batch, self._outcomes(future, batch)

    def _submit(self, number: int, batch: Batch, work: Work) -> "Future[list[Any | Failure]]":
        self.start()
        assert self._pool is not None
        packed = _dumps((number, batch, work, self.limit.end), self.graph)
        try:
            return self._pool.submit(_work, packed)
        except BrokenProcessPool as error:
            failed: Future[list[Any | Failure]] = Future()
            failed.set_exception(error)
            return failed

    def _outcomes(self, future: "Future[list[Any | Failure]]", batch: Batch) -> list[Any | Failure]:
        """Return the outcomes of a batch. A worker that died fails the batches of that moment."""
        try:
            return future.result()
        except BrokenProcessPool:
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = None
            message = "a worker process died, perhaps for lack of memory"
            return [Failure(spec, message) for spec in batch]


class _GraphPickler(pickle.Pickler):
    """Replaces the graph, which the workers have already, by a name."""

    def __init__(self, file: io.BytesIO, graph: Graph) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._graph = graph

    def persistent_id(self, obj: Any) -> str | None:
        return _GRAPH if obj is self._graph else None


class _GraphUnpickler(pickle.Unpickler):
    def persistent_load(self, pid: str) -> Any:
        return _worker_graph


def _dumps(value: Any, graph: Graph) -> bytes:
    file = io.BytesIO()
    _GraphPickler(file, graph).dump(value)
    return file.getvalue()


def _start(parent: int, events: "SimpleQueue[tuple[int, History]]", graph: str) -> None:
    """Initialise a worker process."""
    global _worker_graph
    start_worker(parent, events)
    _worker_graph = pickle.loads(Path(graph).read_bytes())


def _work(packed: bytes) -> list[Any | Failure]:
    """Run a batch in a worker process."""
    number, batch, work, end = _GraphUnpickler(io.BytesIO(packed)).load()
    limit = TimeLimit(end)

    def on_epoch(history: History) -> None:
        send_event(number, history)
        limit.check()

    outcomes: list[Any | Failure] = work(batch, on_epoch)
    return outcomes
