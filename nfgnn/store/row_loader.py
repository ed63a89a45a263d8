"""Read batches of rows ahead of the trainer."""

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
    """Anything that returns rows of terms: a :class:`~nfgnn.store.Store` or :class:`MemoryRows`."""

    def rows(self, index: Tensor) -> Tensor:
        """Return rows ``[b, K + 1, features]`` in float32."""


@dataclass(frozen=True)
class MemoryRows:
    """Rows in memory."""

    terms: Tensor

    def rows(self, index: Tensor) -> Tensor:
        return self.terms[index]


@dataclass(frozen=True)
class Batch:
    """The share of one process in a batch, on the device of the trainer."""

    rows: Tensor
    y: Tensor
    total: int
    """Rows of the whole batch, including those of other processes."""


@dataclass(frozen=True)
class _Window:
    """Rows in the order of the source, and the order in which batches take them."""

    rows: Tensor
    order: Tensor
    y: Tensor


class RowLoader:
    """Load rows in random order, one batch at a time.

    Reading single random rows from disk is slow, reading long ranges is fast. Therefore ``index``
    is divided into blocks of consecutive rows. An epoch visits the blocks in random order, in
    windows of 16, and shuffles the rows within each window. A thread reads the next window while
    batches are taken from the current one. If all rows fit into one window, they are read once and
    kept, and the order is a random permutation.

    A batch depends only on (seed, epoch, step). It does not depend on the number of processes,
    each of which takes an equal part of every batch, nor on the step at which an interrupted epoch
    is resumed.

    Args:
        source: where the rows are.
        y: a label for every row of the source.
        index: the rows to use, in ascending order.
        batch_size: rows of a batch over all processes; 0 means all rows.
        seed: seed of the order; ``None`` keeps the order of ``index``.
        device: where batches are needed. Rows are copied to a GPU through pinned memory, one window
            at a time.
        rank: number of this process.
        count: number of processes.
        window_bytes: largest size of a window. The order depends on it, so it must not depend on
            the machine.
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
        self.source = source
        self.y = y
        self.index = index
        self.seed = seed
        self.device = device
        self.rank = rank
        self.count = count
        self.batch_size = batch_size or max(1, index.numel())
        self.batch_values = self.batch_size * max(1, source.rows(index[:1]).numel())
        self.steps = math.ceil(index.numel() / self.batch_size)
        # Windows have about equal size: a short one would be used up before the next is read.
        max_batches = max(1, window_bytes // (4 * self.batch_values))
        windows = max(1, math.ceil(self.steps / max_batches))
        self.window_batches = max(1, math.ceil(self.steps / windows))
        self.window = self.window_batches * self.batch_size
        self.rows_given = 0
        self.seconds = 0.0
        self.seconds_waited = 0.0
        # Without it, the new thread would pin memory for the first GPU.
        initializer = None if device.index is None else torch.cuda.set_device
        self._thread = ThreadPoolExecutor(1, initializer=initializer, initargs=(device,))
        self._ahead: dict[tuple[int, int], Future[_Window]] = {}
        self._all_rows: Tensor | None = None

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, beginning with step ``start``."""
        began = time.perf_counter()
        # A single batch of one process needs no copy in another order.
        whole = self.count == 1 and self.steps == 1
        for number in range(start // self.window_batches, self._num_windows):
            window = self._wait_for(epoch, number)
            first_step = number * self.window_batches
            last = 0
            for step in range(first_step, min(first_step + self.window_batches, self.steps)):
                total = min(self.batch_size, self.index.numel() - step * self.batch_size)
                first = last
                last = first + self._share(total)
                if step < start:
                    continue
                self.rows_given += last - first
                rows = window.rows if whole else window.rows[window.order[first:last]]
                yield Batch(rows, window.y[first:last], total)
                now = time.perf_counter()
                self.seconds += now - began
                began = now

    def loading(self) -> dict[str, float]:
        """Return the rows per second of this process, and the share of time spent waiting."""
        seconds = max(self.seconds, 1e-9)
        return {
            "rows_per_second": self.rows_given / seconds,
            "waited": self.seconds_waited / seconds,
        }

    def close(self) -> None:
        """Stop the reading thread."""
        self._thread.shutdown(cancel_futures=True)
        self._ahead.clear()

    def window_order(self, epoch: int, number: int) -> Tensor:
        """Return the positions in ``index`` of the rows of a window, in the order of their use."""
        n = self.index.numel()
        first = number * self.window
        position = torch.arange(first, min(first + self.window, n))
        if self.seed is None or self.steps <= 1:
            return position
        generator = _generator(self.seed, epoch, number)
        shuffle = torch.randperm(position.numel(), generator=generator)
        if n <= self.window:
            return shuffle
        block = max(1, self.window // _BLOCKS_PER_WINDOW)
        block_order = torch.randperm(math.ceil(n / block), generator=_generator(self.seed, epoch))
        starts = block_order * block
        sizes = (n - starts).clamp(max=block)
        ends = sizes.cumsum(0)
        # The epoch is the concatenation of the blocks; find the block of every position in it.
        which = torch.searchsorted(ends, position, right=True)
        return (starts[which] + position - (ends - sizes)[which])[shuffle]

    @property
    def _num_windows(self) -> int:
        return math.ceil(self.steps / self.window_batches)

    def _share(self, total: int) -> int:
        """Return the rows of this process in a batch; the first processes take the remainder."""
        return total // self.count + (self.rank < total % self.count)

    def _wait_for(self, epoch: int, number: int) -> _Window:
        """Return a window, and start to read the one after it."""
        began = time.perf_counter()
        future = self._ahead.pop((epoch, number), None)
        if future is None:
            future = self._thread.submit(self._read, epoch, number)
        window = future.result()
        following = (epoch, number + 1)
        if (number + 1) * self.window >= self.index.numel():
            following = (epoch + 1, 0)
        self._ahead = {following: self._thread.submit(self._read, *following)}
        self.seconds_waited += time.perf_counter() - began
        return window

    def _read(self, epoch: int, number: int) -> _Window:
        """Read the share of this process in a window, in the order of the source."""
        batches = self.window_order(epoch, number).split(self.batch_size)
        own = torch.cat([batch.tensor_split(self.count)[self.rank] for batch in batches])
        if self.index.numel() > self.window:
            ascending = own.sort().values
            rows = self._to_device(self.source.rows(self.index[ascending]))
            order = torch.searchsorted(ascending, own)
        else:
            if self._all_rows is None:
                self._all_rows = self._to_device(self.source.rows(self.index))
            rows = self._all_rows
            order = own
        return _Window(rows, self._to_device(order), self._to_device(self.y[self.index[own]]))

    def _to_device(self, values: Tensor) -> Tensor:
        if self.device.type != "cuda":
            return values
        return values.pin_memory().to(self.device, non_blocking=True)


def stream_seed(*parts: int) -> int:
    """Combine several numbers into a seed.

    Randomness then depends on these numbers only, and not on what was drawn before.
    """
    state = np.random.SeedSequence(parts).generate_state(1, np.uint64)
    return int(state[0]) >> 1


def _generator(*parts: int) -> torch.Generator:
    return torch.Generator().manual_seed(stream_seed(*parts))
