"""Worker processes that stay alive for many calls of :func:`~nfgnn.training.execute`."""

import os
import pickle
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import current_process
from multiprocessing.queues import SimpleQueue
from typing import Any

from nfgnn.training.execution import Batch, Executor, OnBatchEpoch, Work
from nfgnn.training.executors.graph_pickle import dumps_without_graphs, loads_with_graphs
from nfgnn.training.executors.in_process import InProcess
from nfgnn.training.executors.process_pool import (
    EVENT_SECONDS,
    kill_workers,
    send_event,
    start_worker,
    worker_context,
)
from nfgnn.training.executors.time_limit import TimeLimit
from nfgnn.training.history import History
from nfgnn.training.run import Failure, Graph

_DIED = "a worker process died, possibly out of memory"
_GRAPH = "graph"
_worker_graph: Graph | None = None


class WorkerPool(Executor):
    """Train the runs of one graph in worker processes, one thread each.

    Workers take seconds to start, so they are started once, and the graph is passed to them once.
    Until the first of them is ready, this process trains. In a script whose main part is not
    guarded by ``if __name__ == "__main__"`` no worker can start, and this process trains all runs.

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
        self._workers: _Workers | None = None
        self._submitted = 0
        self._cannot_start = False
        if "_inheriting" in vars(current_process()):
            # A worker is importing a script without a guarded main part, which gets here again. The
            # parent process notices that it ends and trains by itself.
            os._exit(1)

    def start(self) -> None:
        """Start the workers and return at once."""
        if self._workers is None:
            self._workers = _Workers(self.graph, self.workers)

    def close(self) -> None:
        """Stop the workers."""
        if self._workers is not None:
            self._workers.stop()
            self._workers = None

    def run(
        self, batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch
    ) -> Iterator[tuple[Batch, list[Any | Failure]]]:
        waiting = list(batches)
        running: dict[Future[list[Any | Failure]], tuple[int, Batch]] = {}
        while waiting or running:
            self.start()
            if self._cannot_start or not self._has_answered():
                yield from self._in_process.run(waiting[:1], work, on_epoch)
                waiting = waiting[1:]
                continue
            # No queue of submitted work: whether a batch can end in time is decided when a worker
            # is free for it.
            while waiting and len(running) < self.workers:
                batch = waiting.pop(0)
                if self.limit.may_start(batch):
                    running[self._submit(batch, work)] = (self._submitted, batch)
            done, _ = wait(running, EVENT_SECONDS, FIRST_COMPLETED)
            self._report_events(dict(running.values()), on_epoch)
            for future in done:
                _, batch = running.pop(future)
                if not isinstance(future.exception(), BrokenProcessPool):
                    yield batch, future.result()
                elif self._has_worked():
                    self.close()  # new workers start with the next batch
                    yield batch, [Failure(spec, _DIED) for spec in batch]
                else:
                    # No worker can start, for example in a script without a guarded main part.
                    self._cannot_start = True
                    waiting.insert(0, batch)

    def _submit(self, batch: Batch, work: Work) -> "Future[list[Any | Failure]]":
        assert self._workers is not None
        self._submitted += 1
        limit = TimeLimit(self.limit.end, self.limit.longest)
        task = (self._submitted, batch, work, limit)
        return self._workers.submit(dumps_without_graphs(task, {self.graph: _GRAPH}))

    def _has_answered(self) -> bool:
        """Whether a worker has started, or failed to start."""
        return self._workers is not None and any(one.done() for one in self._workers.started)

    def _has_worked(self) -> bool:
        """Whether a worker has ever started. Workers that were given up had started."""
        if self._workers is None:
            return True
        return any(one.done() and one.exception() is None for one in self._workers.started)

    def _report_events(self, running: dict[int, Batch], on_epoch: OnBatchEpoch) -> None:
        while self._workers is not None and not self._workers.events.empty():
            number, history = self._workers.events.get()
            # Events of a batch may arrive after its result.
            if number in running:
                on_epoch(running[number], history)


class _Workers:
    """Worker processes, which a thread starts.

    Args:
        graph: passed to every worker once.
        count: number of processes.
    """

    def __init__(self, graph: Graph, count: int) -> None:
        self._graph = graph
        self._count = count
        self._context = worker_context()
        self.events: SimpleQueue[tuple[int, History]] = self._context.SimpleQueue()
        self.started: list[Future[int]] = []
        """Done as soon as a worker answers."""
        self._pool: ProcessPoolExecutor | None = None
        self._is_stopped = False
        self._lock = threading.Lock()
        threading.Thread(target=self._start, daemon=True).start()

    def _start(self) -> None:
        # Workers and their server inherit the signal mask of this thread. Ctrl-C then only reaches
        # the parent process, which stops them.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        # Pickled here, because tensors would go through shared memory otherwise, of which
        # containers have little.
        initial = (self.events, pickle.dumps(self._graph, pickle.HIGHEST_PROTOCOL))
        pool = ProcessPoolExecutor(self._count, self._context, _start, initial)
        # The first call waits for the server.
        started = [pool.submit(os.getpid) for _ in range(self._count)]
        with self._lock:
            self._pool = pool
            self.started = started
            is_stopped = self._is_stopped
        if is_stopped:
            kill_workers(pool)

    def submit(self, packed: bytes) -> "Future[list[Any | Failure]]":
        """Run a batch in a worker that is free."""
        assert self._pool is not None
        try:
            return self._pool.submit(_work, packed)
        except BrokenProcessPool as error:
            failed: Future[list[Any | Failure]] = Future()
            failed.set_exception(error)
            return failed

    def stop(self) -> None:
        """End the workers. Those that are still starting end when they have started."""
        with self._lock:
            self._is_stopped = True
            pool = self._pool
        if pool is not None:
            kill_workers(pool)


def _start(events: "SimpleQueue[tuple[int, History]]", graph: bytes) -> None:
    """Initialise a worker process."""
    global _worker_graph
    start_worker(events)
    _worker_graph = pickle.loads(graph)


def _work(packed: bytes) -> list[Any | Failure]:
    """Run a batch in a worker process."""
    number, batch, work, given = loads_with_graphs(packed, {_GRAPH: _worker_graph})
    limit = given.from_now()

    def on_epoch(history: History) -> None:
        send_event(number, history)
        limit.check()

    outcomes: list[Any | Failure] = work(batch, on_epoch)
    return outcomes
