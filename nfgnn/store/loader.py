"""Batches of rows, read ahead of the trainer."""

import math
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

WINDOW_BYTES = 2**29
_BLOCKS_PER_WINDOW = 16


class RowSource(Protocol):
    """Whatever has rows of terms: a :class:`~nfgnn.store.Store`, or :class:`MemoryRows`."""

    def rows(self, index: Tensor) -> Tensor:
        """Rows ``[b, K + 1, features]`` in float32."""


@dataclass(frozen=True)
class MemoryRows:
    """Rows that are in memory."""

    terms: Tensor

    def rows(self, index: Tensor) -> Tensor:
        return self.terms[index]


@dataclass(frozen=True)
class Batch:
    """A process' share of a batch, on the trainer's device."""

    rows: Tensor
    y: Tensor
    total: int
    """Rows of the whole batch, those of the other processes included."""


@dataclass(frozen=True)
class _Window:
    """Rows as they lie in the source, and the order in which batches take them."""

    rows: Tensor
    order: Tensor
    y: Tensor


class RowLoader:
    """Rows in random order, a batch at a time.

    Random rows from a disk are slow, long stretches of them fast. So ``index`` is cut into blocks of neighbours; an
    epoch takes the blocks in random order, a window of 16 at a time, and shuffles the rows within the window. The next
    window is read by a thread while batches are made of the present one. Where all rows fit in one window they are
    read once and kept, and the order is a plain random permutation.

    A batch is a function of (seed, epoch, step) alone: not of the number of processes, which each take an equal
    stretch of every batch, nor of the step that an interrupted epoch is taken up again at.

    Args:
        source: where the rows are.
        y: a label for every row of the source.
        index: the rows to use, ascending.
        batch_size: rows of a batch, over all processes; 0 is all of them.
        seed: of the order; ``None`` keeps the order of ``index``.
        device: where batches are wanted. Towards a GPU rows go through pinned memory, a window at a time.
        rank, count: which process this is, of how many.
        window_bytes: most bytes of a window. It decides the order, so it must not depend on the machine.
    """

    def __init__(
        self,
        source: RowSource,
        y: Tensor,
        index: Tensor,
        batch_size: int,
        seed: int | None,
        device: torch.device,
        rank: int = 0,
        count: int = 1,
        window_bytes: int = WINDOW_BYTES,
    ) -> None:
        self.source, self.y, self.index, self.seed, self.device = source, y, index, seed, device
        self.rank, self.count = rank, count
        self.batch_size = batch_size or max(1, index.numel())
        row = max(1, source.rows(index[:1]).numel())
        self.batch_values = row * self.batch_size
        self.steps = math.ceil(index.numel() / self.batch_size)
        # Windows of about the same size: a short one would be used up before the next long one is read.
        most = max(1, window_bytes // (4 * self.batch_values))
        windows = math.ceil(self.steps / most)
        self.window = max(1, math.ceil(self.steps / max(1, windows))) * self.batch_size
        self.rows_given, self.seconds, self.seconds_waited = 0, 0.0, 0.0
        # A new thread would pin memory for the first GPU.
        own = () if device.index is None else (device,)
        self._thread = ThreadPoolExecutor(
            1, initializer=torch.cuda.set_device if own else None, initargs=own
        )
        self._ahead: dict[tuple[int, int], Future[_Window]] = {}
        self._kept: Tensor | None = None

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from step ``start`` on."""
        began = time.perf_counter()
        per_window = self.window // self.batch_size
        for number in range(start // per_window, math.ceil(self.steps / per_window)):
            window, done = self._wait_for(epoch, number), 0
            for step in range(number * per_window, min((number + 1) * per_window, self.steps)):
                total = min(self.batch_size, self.index.numel() - step * self.batch_size)
                part = slice(done, done := done + self._share(total))
                if step >= start:
                    self.rows_given += part.stop - part.start
                    whole = self.count == 1 and self.steps == 1
                    rows = window.rows if whole else window.rows[window.order[part]]
                    yield Batch(rows, window.y[part], total)
                    self.seconds, began = (
                        self.seconds + time.perf_counter() - began,
                        time.perf_counter(),
                    )

    def loading(self) -> dict[str, float]:
        """Rows per second that this process was given, and the share of the time that it waited for them."""
        seconds = max(self.seconds, 1e-9)
        return {
            "rows_per_second": self.rows_given / seconds,
            "waited": self.seconds_waited / seconds,
        }

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(cancel_futures=True)
        self._ahead.clear()

    def places(self, epoch: int, number: int) -> Tensor:
        """The entries of ``index`` that window ``number`` of an epoch holds, in the order they are used in."""
        n, size = self.index.numel(), min(self.window, self.index.numel() - number * self.window)
        stream = torch.arange(number * self.window, number * self.window + size)
        if self.seed is None or self.steps <= 1:
            return stream
        shuffle = torch.randperm(size, generator=_generator(self.seed, epoch, number))
        if n <= self.window:
            return shuffle
        block = max(1, self.window // _BLOCKS_PER_WINDOW)
        starts = (
            torch.randperm(math.ceil(n / block), generator=_generator(self.seed, epoch)) * block
        )
        sizes = (n - starts).clamp(max=block)
        ends = sizes.cumsum(0)
        which = torch.searchsorted(ends, stream, right=True)
        return (starts[which] + stream - (ends - sizes)[which])[shuffle]

    def _share(self, total: int) -> int:
        """Rows of this process in a batch; the first processes take one more where it does not come out even."""
        return total // self.count + (self.rank < total % self.count)

    def _wait_for(self, epoch: int, number: int) -> _Window:
        """A window, asked for before; and ask for the one after it."""
        began = time.perf_counter()
        future = self._ahead.pop((epoch, number), None) or self._thread.submit(
            self._read, epoch, number
        )
        window = future.result()
        last = (number + 1) * self.window >= self.index.numel()
        following = (epoch + 1, 0) if last else (epoch, number + 1)
        self._ahead = {following: self._thread.submit(self._read, *following)}
        self.seconds_waited += time.perf_counter() - began
        return window

    def _read(self, epoch: int, number: int) -> _Window:
        """This process' share of a window, read in the order it lies on the disk."""
        batches = self.places(epoch, number).split(self.batch_size)
        own = torch.cat([batch.tensor_split(self.count)[self.rank] for batch in batches])
        if self.index.numel() > self.window:
            held = own.sort().values
            rows, order = (
                self._to_device(self.source.rows(self.index[held])),
                torch.searchsorted(held, own),
            )
        else:
            if self._kept is None:
                self._kept = self._to_device(self.source.rows(self.index))
            rows, order = self._kept, own
        return _Window(rows, self._to_device(order), self._to_device(self.y[self.index[own]]))

    def _to_device(self, values: Tensor) -> Tensor:
        if self.device.type != "cuda":
            return values
        return values.pin_memory().to(self.device, non_blocking=True)


def stream_seed(*parts: int) -> int:
    """One seed from several numbers, so that what is random depends on them and on nothing that happened before."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)


def _generator(*parts: int) -> torch.Generator:
    return torch.Generator().manual_seed(stream_seed(*parts))
