"""Runs in a pool of processes, one thread each."""

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.context import ForkServerContext
from multiprocessing.queues import SimpleQueue
from typing import Any

import torch

from nfgnn.errors import UserError
from nfgnn.training import inputs
from nfgnn.training.device import resolve_device, usable_cores
from nfgnn.training.execution import Batch, Executor, OnBatchEpoch, Work
from nfgnn.training.executors.in_process import InProcess
from nfgnn.training.history import History
from nfgnn.training.run import Failure, RunSpec
from nfgnn.training.trainer import is_small, stored_values

_START_SECONDS = 5.0  # until a new process has imported everything
EVENT_SECONDS = 0.2  # between two progress events of a worker
_events: "SimpleQueue[tuple[int, History]] | None" = None
_last_event = 0.0


class ProcessPool(Executor):
    """Train batches in worker processes on a CPU.

    A script that uses more than one worker must guard its main part by
    ``if __name__ == "__main__"``.

    Args:
        workers: number of processes. ``None`` trains the first run in this process and starts a
            pool if the time it took makes that worthwhile.
        single_thread: use one thread for runs in this process too.
    """

    def __init__(self, workers: int | None = None, single_thread: bool = False) -> None:
        self.workers = workers
        self.in_process = InProcess(single_thread)

    def run(
        self, batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch
    ) -> Iterator[tuple[Batch, list[Any | Failure]]]:
        # A GPU trains batches of runs instead, and timed runs need the machine to themselves.
        if resolve_device(work.device).type != "cpu" or any(b[0].timed for b in batches):
            yield from self.in_process.run(batches, work, on_epoch)
            return
        workers = self.workers
        rest = list(batches)
        if workers is None and len(rest) > 1:
            start = time.perf_counter()
            yield from self.in_process.run(rest[:1], work, on_epoch)
            seconds = time.perf_counter() - start
            rest = rest[1:]
            workers = suitable_workers(len(rest), seconds)
            # Large runs use all cores by themselves.
            if not _uses_one_thread(rest[0][0]):
                workers = 1
        workers = min(workers or 1, len(rest))
        if workers > 1:
            yield from _run_in_pool(rest, work, on_epoch, workers)
        else:
            yield from self.in_process.run(rest, work, on_epoch)


def suitable_workers(runs: int, seconds: float) -> int:
    """Return how many processes are worth starting for so many runs of so many seconds."""
    workers = max(1, min(usable_cores(), runs))
    rounds = -(-runs // workers)
    saved = seconds * (runs - rounds)
    return workers if saved > 2 * _START_SECONDS else 1


def _uses_one_thread(spec: RunSpec) -> bool:
    """Whether a single thread trains this run fastest."""
    data = spec.graph.data
    if inputs.store_of(data) is not None:
        return False
    return is_small(stored_values(data.x), spec.config.build(*inputs.sizes(data)))


def worker_context() -> ForkServerContext:
    """Return a context whose processes are forked from a server that imports everything once."""
    # Not "fork": the threads of OpenMP and CUDA do not survive it. The server never computes.
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _run_in_pool(
    batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch, workers: int
) -> Iterator[tuple[Batch, list[Any | Failure]]]:
    context = worker_context()
    events: SimpleQueue[tuple[int, History]] = context.SimpleQueue()
    initial = (events,)
    with ProcessPoolExecutor(workers, context, start_worker, initial) as pool:
        futures = {}
        try:
            for number, batch in enumerate(batches):
                # Pickled here, because tensors would go through shared memory otherwise, of which
                # containers have little.
                packed = pickle.dumps((number, batch, work))
                futures[pool.submit(_work, packed)] = batch
            while futures:
                done, _ = wait(futures, EVENT_SECONDS, FIRST_COMPLETED)
                while not events.empty():
                    number, history = events.get()
                    on_epoch(batches[number], history)
                for future in done:
                    yield futures.pop(future), future.result()
        except BrokenProcessPool:
            raise UserError(
                "a worker process died, possibly out of memory: try fewer --workers"
            ) from None
        finally:
            if futures:
                # After an error nobody reads the events, so workers that report them would wait
                # forever.
                kill_workers(pool)


def kill_workers(pool: ProcessPoolExecutor) -> None:
    """Kill the workers, as ``ProcessPoolExecutor.kill_workers`` of Python 3.14 does.

    Waiting for workers to clean up takes seconds.
    """
    workers = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.kill()


def _work(packed: bytes) -> list[Any | Failure]:
    """Run a batch in a worker process."""
    number, batch, work = pickle.loads(packed)
    outcomes: list[Any | Failure] = work(batch, partial(send_event, number))
    return outcomes


def send_event(number: int, history: History) -> None:
    """Send the history of a batch to the parent process, a few times a second at most."""
    global _last_event
    now = time.perf_counter()
    if _events is not None and now - _last_event >= EVENT_SECONDS:
        _last_event = now
        _events.put((number, history))


def start_worker(events: "SimpleQueue[tuple[int, History]]") -> None:
    """Initialise a worker: one thread of computation, and exit when the parent process dies."""
    global _events
    _events = events

    def watch_parent() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        # The parent reports the interruption.
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    torch.set_num_threads(1)
    threading.Thread(target=watch_parent, daemon=True).start()
