"""Worker processes that stay alive for many calls of :func:`~nfgnn.training.execute`."""

import io
import os
import pickle
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from types import TracebackType
from typing import Any

from nfgnn.training.execution import Batch, Executor, OnBatchEpoch, Work
from nfgnn.training.executors.in_process import InProcess
from nfgnn.training.executors.process_pool import EVENT_SECONDS, send_event, start_worker
from nfgnn.training.executors.time_limit import TimeLimit
from nfgnn.training.history import History
from nfgnn.training.run import Failure, Graph

_GRAPH = "graph"
"""Stands for the graph in pickled work."""
_DIED = "a worker process died, perhaps for lack of memory"
_worker_graph: Graph | None = None


class WorkerPool(Executor):
    """Train the runs of one graph in worker processes, one thread each.

    Workers take seconds to start, so they are started once, and the graph is passed to them once.
    Until the first of them is ready, this process trains.
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
        self._in_process = InProcess(single_thread=True, limit=self.limit)
        self._cannot_start = False
        self._starting: threading.Thread | None = None
        self._started: list[Future[int]] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._pool: ProcessPoolExecutor | None = None
        # Not "fork": the threads of OpenMP do not survive it. A server that has imported torch but
        # never computed starts workers quickly.
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload([__name__])
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
        if self._starting is None:
            self._starting = threading.Thread(target=self._start_workers, daemon=True)
            self._starting.start()

    def _start_workers(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="nfgnn-")
            graph = pickle.dumps(self.graph, pickle.HIGHEST_PROTOCOL)
            Path(self._folder.name, _GRAPH).write_bytes(graph)
        initial = (self._events, str(Path(self._folder.name, _GRAPH)))
        self._pool = ProcessPoolExecutor(self.workers, self._context, _start, initial)
        self._started = [self._pool.submit(os.getpid) for _ in range(self.workers)]

    def close(self) -> None:
        """Stop the workers."""
        self._discard()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def run(
        self, batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch
    ) -> Iterator[tuple[Batch, list[Any | Failure]]]:
        if self._cannot_start:
            yield from self._in_process.run(batches, work, on_epoch)
            return
        self.start()
        waiting = list(range(len(batches)))
        futures: dict[Future[list[Any | Failure]], int] = {}
        while waiting and not self._is_ready():
            yield from self._in_process.run([batches[waiting.pop(0)]], work, on_epoch)
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
                if not self._has_died(future):
                    yield batch, future.result()
                elif self._has_worked():
                    self._discard()
                    yield batch, [Failure(spec, _DIED) for spec in batch]
                else:
                    # No worker can start, for example in a script without a guarded main part.
                    self._cannot_start = True
                    yield from self._in_process.run([batch], work, on_epoch)

    def _submit(self, number: int, batch: Batch, work: Work) -> "Future[list[Any | Failure]]":
        self.start()
        assert self._starting is not None
        self._starting.join()
        assert self._pool is not None
        limit = TimeLimit(self.limit.end, self.limit.longest)
        packed = _dumps((number, batch, work, limit), self.graph)
        try:
            return self._pool.submit(_work, packed)
        except BrokenProcessPool as error:
            failed: Future[list[Any | Failure]] = Future()
            failed.set_exception(error)
            return failed

    def _is_ready(self) -> bool:
        """Whether a worker has started, or cannot be started."""
        return any(one.done() for one in self._started)

    def _has_died(self, future: "Future[list[Any | Failure]]") -> bool:
        return isinstance(future.exception(), BrokenProcessPool)

    def _has_worked(self) -> bool:
        """Whether a worker has ever started."""
        return any(one.done() and one.exception() is None for one in self._started)

    def _discard(self) -> None:
        """End the workers. New ones start with the next batch."""
        if self._starting is not None:
            self._starting.join()
            self._starting = None
        if self._pool is not None:
            # As `kill_workers` of Python 3.14: waiting for them to clean up would take seconds.
            workers = list((self._pool._processes or {}).values())
            self._pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.kill()
            self._pool = None


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


def _start(events: "SimpleQueue[tuple[int, History]]", graph: str) -> None:
    """Initialise a worker process."""
    global _worker_graph
    start_worker(events)
    try:
        _worker_graph = pickle.loads(Path(graph).read_bytes())
    except FileNotFoundError:
        os._exit(0)  # the pool was closed while this worker started


def _work(packed: bytes) -> list[Any | Failure]:
    """Run a batch in a worker process."""
    number, batch, work, given = _GraphUnpickler(io.BytesIO(packed)).load()
    limit = given.from_now()

    def on_epoch(history: History) -> None:
        send_event(number, history)
        limit.check()

    outcomes: list[Any | Failure] = work(batch, on_epoch)
    return outcomes
