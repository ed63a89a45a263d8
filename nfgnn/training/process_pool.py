"""Runs side by side on the cores of a CPU: a process each, with one thread.

Seeds have next to nothing in common that a CPU could compute once, but they need not wait for each other.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from typing import Any, TypeVar

import torch

from nfgnn.errors import UserError
from nfgnn.training.device import usable_cores

T = TypeVar("T")
_START_SECONDS = 5.0  # until a process has imported everything
_TELL_SECONDS = 0.2
_told: "SimpleQueue[Any] | None" = None


def processes_for(runs: int, seconds: float) -> int:
    """How many processes are worth starting for as many runs, each of which takes so many seconds."""
    processes = max(1, min(usable_cores(), runs))
    saved = seconds * (runs - -(-runs // processes))
    return processes if saved > 2 * _START_SECONDS else 1


def side_by_side(
    work: Callable[..., T],
    tasks: Iterable[tuple[Any, ...]],
    processes: int,
    on_news: Callable[[Any], None] = lambda _: None,
) -> Iterator[tuple[tuple[Any, ...], T]]:
    """``work(*task)`` for all tasks, as they are finished: pairs of a task and its result.

    What the processes :func:`tell` meanwhile goes to ``on_news``. They end with the caller, however that ends.
    """
    context = get_context("spawn")
    news: SimpleQueue[Any] = context.SimpleQueue()
    with ProcessPoolExecutor(processes, context, _start, (os.getpid(), news)) as pool:
        futures = {pool.submit(work, *task): task for task in tasks}
        try:
            while futures:
                done, _ = wait(futures, _TELL_SECONDS, FIRST_COMPLETED)
                while not news.empty():
                    on_news(news.get())
                for future in done:
                    yield futures.pop(future), future.result()
        except BrokenProcessPool:
            raise UserError(
                "a worker process died, perhaps for lack of memory: try fewer --workers"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def tell(something: Any) -> None:
    """News for who started this process; without one, for nobody."""
    if _told is not None:
        _told.put(something)


def seldom(function: Callable[[T], None]) -> Callable[[T], None]:
    """The function, but called a few times a second at most."""
    last = 0.0

    def call(value: T) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last >= _TELL_SECONDS:
            last = now
            function(value)

    return call


def _start(parent: int, news: "SimpleQueue[Any]") -> None:
    """One thread of computation; and no life after the parent's, which may be killed without a word."""
    global _told

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    _told = news
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(
            signal.SIGINT, lambda *_: os._exit(130)
        )  # the parent says what there is to say
    torch.set_num_threads(1)
    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """As in such a process, in this one."""
    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
