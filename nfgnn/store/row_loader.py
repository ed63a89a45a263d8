"""Read batches of rows ahead of the trainer."""

import math
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

WINDOW_BYTES = 2**29
_BLOCKS_PER_WINDOW = 16
_READERS = 4  # more do not read faster from one disk
_RESIDENT_SHARE = 0.4  # of the free memory of a GPU; training and validation have a loader each
_STAGING_BYTES = 2**28


class RowSource(Protocol):
    """Anything that returns rows of terms: a :class:`~nfgnn.store.Store` or :class:`MemoryRows`."""

    def rows(self, index: Tensor) -> Tensor:
        """Return rows ``[b, K + 1, features]`` in float32."""


@runtime_checkable
class EncodedRows(RowSource, Protocol):
    """Rows that can be read in the number type of their file, which often is half as large."""

    @property
    def encoded_type(self) -> torch.dtype:
        """The number type of the file."""

    def read_encoded(self, index: Tensor, out: Tensor) -> None:
        """Read rows into a contiguous tensor of this type on the CPU."""


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
    windows of 16, and shuffles the rows within each window. Threads read the next window while
    batches are taken from the current one. If all rows fit into one window, the order is a random
    permutation.

    Rows are read once and kept if they fit into one window, or into 40 % of the free memory of a
    GPU. The order of the batches is the same wherever the rows are.

    A batch depends only on (seed, epoch, step). It does not depend on the number of processes,
    each of which takes an equal part of every batch, nor on the step at which an interrupted epoch
    is resumed.

    Only the last call of :meth:`batches` can be iterated, because the buffers are reused.

    Args:
        source: where the rows are.
        y: a label for every row of the source.
        index: the rows to use, in ascending order.
        batch_size: rows of a batch over all processes; 0 means all rows.
        seed: seed of the order; ``None`` keeps the order of ``index``.
        device: where batches are needed. Rows that are not kept on a GPU are copied to it through
            pinned memory, one window at a time, while batches are taken from the window before.
        rank: number of this process.
        count: number of processes.
        window_bytes: largest size of a window. The order depends on it, so it must not depend on
            the machine.
        keep: whether all rows are read once and kept on the device; by default, if they fit.
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
        keep: bool | None = None,
    ) -> None:
        self.source = source
        self.y = y
        self.index = index
        self.seed = seed
        self.device = device
        self.rank = rank
        self.count = count
        self.batch_size = batch_size or max(1, index.numel())
        row = source.rows(index[:1])
        self.batch_values = self.batch_size * max(1, row.numel())
        self.steps = math.ceil(index.numel() / self.batch_size)
        # Windows have about equal size: a short one would be used up before the next is read.
        max_batches = max(1, window_bytes // (4 * self.batch_values))
        windows = max(1, math.ceil(self.steps / max_batches))
        self.window_batches = max(1, math.ceil(self.steps / windows))
        self.window = self.window_batches * self.batch_size
        self.rows_given = 0
        self.seconds = 0.0
        self.seconds_waited = 0.0
        self._reader = _RowReader(source, row, device)
        self._keep = self._fits() if keep is None else keep
        # Without it, the new thread would pin memory for the first GPU.
        initializer = None if device.index is None else torch.cuda.set_device
        self._thread = ThreadPoolExecutor(1, initializer=initializer, initargs=(device,))
        self._ahead: dict[tuple[int, int], Future[_Window]] = {}
        self._all_rows: Tensor | None = None
        self._newest = 0  # number of the last call of batches()

    def _fits(self) -> bool:
        """Whether all rows can be kept."""
        if self.index.numel() <= self.window:
            return True
        if self.device.type != "cuda":
            return False
        needed = self.index.numel() * self._reader.row_bytes
        return needed <= _RESIDENT_SHARE * torch.cuda.mem_get_info(self.device)[0]

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, beginning with step ``start``.

        An older iterator of the same loader raises an error when it is used again.
        """
        self._newest += 1
        return self._batches(self._newest, epoch, start)

    def _batches(self, call: int, epoch: int, start: int) -> Iterator[Batch]:
        began = time.perf_counter()
        # A single batch of one process needs no copy in another order.
        whole = self.count == 1 and self.steps == 1
        for number in range(start // self.window_batches, self._num_windows):
            self._check_newest(call)
            window = self._wait_for(epoch, number)
            first_step = number * self.window_batches
            last = 0
            for step in range(first_step, min(first_step + self.window_batches, self.steps)):
                total = min(self.batch_size, self.index.numel() - step * self.batch_size)
                first = last
                last = first + self._share(total)
                if step < start:
                    continue
                self._check_newest(call)
                self.rows_given += last - first
                rows = window.rows if whole else window.rows[window.order[first:last]]
                yield Batch(rows.float(), window.y[first:last], total)
                now = time.perf_counter()
                self.seconds += now - began
                began = now

    def _check_newest(self, call: int) -> None:
        if call != self._newest:
            raise RuntimeError(
                "batches() was called again, and the rows of the older iterator are overwritten: "
                "use one iterator of a RowLoader at a time, or create a second loader"
            )

    def loading(self) -> dict[str, float]:
        """Return the rows per second of this process, and the share of time spent waiting."""
        seconds = max(self.seconds, 1e-9)
        return {
            "rows_per_second": self.rows_given / seconds,
            "waited": self.seconds_waited / seconds,
        }

    def close(self) -> None:
        """Stop the reading threads."""
        self._thread.shutdown(cancel_futures=True)
        self._reader.close()
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
        y = self._to_device(self.y[self.index[own]])
        if self._keep:
            if self._all_rows is None:
                self._all_rows = self._reader.read_all(self.index)
            return _Window(self._all_rows, self._to_device(own), y)
        ascending = own.sort().values
        rows = self._reader.read(self.index[ascending])
        order = torch.searchsorted(ascending, own)
        return _Window(rows, self._to_device(order), y)

    def _to_device(self, values: Tensor) -> Tensor:
        if self.device.type != "cuda":
            return values
        return values.pin_memory().to(self.device, non_blocking=True)


class _RowReader:
    """Read rows and copy them to the device.

    Encoded rows are read by several threads into two buffers by turns. These are reused, because
    the system takes longer to provide new memory than to fill it. On a GPU they are pinned, and the
    copies run beside the computation.
    """

    def __init__(self, source: RowSource, row: Tensor, device: torch.device) -> None:
        self.source = source
        self.device = device
        self._encoded = source if isinstance(source, EncodedRows) else None
        self._dtype = row.dtype if self._encoded is None else self._encoded.encoded_type
        self._shape = row.shape[1:]
        self.row_bytes = max(1, self._dtype.itemsize * self._shape.numel())
        self._pool = ThreadPoolExecutor(_READERS)
        self._buffers: list[Tensor] = []
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def read(self, index: Tensor) -> Tensor:
        """Return rows on the device. On a CPU they are valid until the next but one call."""
        rows = self._rows(index)
        if self._stream is None:
            return rows
        out = torch.empty(rows.shape, dtype=self._dtype, device=self.device)
        self._copy(rows, out)
        return out

    def read_all(self, index: Tensor) -> Tensor:
        """Return rows on the device, to be kept."""
        if self._stream is None:
            rows = self._rows(index)
            self._buffers.clear()
            return rows
        out = torch.empty((index.numel(), *self._shape), dtype=self._dtype, device=self.device)
        first = 0
        for part in index.split(max(1, _STAGING_BYTES // self.row_bytes)):
            self._copy(self._rows(part), out[first : first + part.numel()])
            first += part.numel()
        self._buffers.clear()
        return out

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown(cancel_futures=True)

    def _rows(self, index: Tensor) -> Tensor:
        """Return rows in the memory of the host."""
        if self._encoded is None:
            rows = self.source.rows(index)
            return rows if self._stream is None else rows.pin_memory()
        buffer = self._buffer(index.numel())
        parts = zip(index.tensor_split(_READERS), buffer.tensor_split(_READERS))
        for done in [self._pool.submit(self._encoded.read_encoded, *part) for part in parts]:
            done.result()
        return buffer

    def _buffer(self, count: int) -> Tensor:
        """Return the buffer that was not used by the last call."""
        buffer = torch.empty(0)
        if len(self._buffers) == 2:
            buffer = self._buffers.pop(0)
        if len(buffer) < count:
            pinned = self._stream is not None
            buffer = torch.empty((count, *self._shape), dtype=self._dtype, pin_memory=pinned)
        self._buffers.append(buffer)
        return buffer[:count]

    def _copy(self, rows: Tensor, out: Tensor) -> None:
        """Copy rows to the device on a stream of its own, and wait for the copy."""
        assert self._stream is not None
        # The memory of ``out`` may still be in use by work that was queued before it was freed.
        self._stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._stream):
            out.copy_(rows, non_blocking=True)
        self._stream.synchronize()


def stream_seed(*parts: int) -> int:
    """Combine several numbers into a seed.

    Randomness then depends on these numbers only, and not on what was drawn before.
    """
    state = np.random.SeedSequence(parts).generate_state(1, np.uint64)
    return int(state[0]) >> 1


def _generator(*parts: int) -> torch.Generator:
    return torch.Generator().manual_seed(stream_seed(*parts))
