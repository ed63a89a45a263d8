"""Measure how fast this machine is, for the time that a plan predicts."""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

_DEVICE_BANDWIDTH = 2.0e12  # bytes per second that a GPU gathers, an estimate
_DISK_SECONDS_PER_BYTE = 2e-9  # assumed if the disk cannot be measured


@dataclass(frozen=True)
class Speed:
    """Seconds per unit of work."""

    gather: float
    """Per entry and column of a sparse product."""
    entry: float
    """Per entry of a sparse product, for any number of columns."""
    normalise: float
    """Per entry that is normalised."""
    sort: float
    """Per entry that is sorted."""
    disk: float
    """Per byte read from or written to disk."""

    def product(self, entries: int, nodes: int, width: int, cut: str) -> float:
        """Return the seconds of one sparse product."""
        if cut == "device":
            return entries * (4 + 4 * width) / _DEVICE_BANDWIDTH
        seconds = entries * (self.entry + width * self.gather)
        if cut == "streamed":
            seconds += (8 * entries + 12 * nodes * width) * self.disk
        return seconds

    def rest(self, entries: int, read: int, written: int) -> float:
        """Return the seconds of sorting, and of reading and writing outside the products."""
        return 3 * entries * self.sort + (read + written) * self.disk / 2


NOMINAL = Speed(gather=1e-9, entry=4e-9, normalise=1e-8, sort=7e-8, disk=1e-9)
"""Speed of one core with a disk of 1 GB/s."""


def measure_speed(nodes: int, folder: Path) -> Speed:
    """Time sparse products with at most ``nodes`` columns, a sort, and a file in ``folder``."""
    n = min(nodes, 2**20)
    rows = min(n, 2**16)
    degree = 8
    entries = rows * degree
    generator = torch.Generator().manual_seed(0)
    indices = torch.randint(n, (entries,), generator=generator, dtype=torch.int32)
    indptr = torch.arange(0, entries + 1, degree, dtype=torch.int32)
    matrix = torch.sparse_csr_tensor(
        indptr, indices, torch.ones(entries), (rows, n), check_invariants=False
    )
    # Two widths separate the cost per column from the cost per entry.
    narrow = _seconds(partial(torch.mm, matrix, torch.ones(n, 4))) / entries
    wide = _seconds(partial(torch.mm, matrix, torch.ones(n, 16))) / entries
    gather = max((wide - narrow) / 12, 1e-11)
    scale = torch.ones(n, dtype=torch.float64)
    normalise = _seconds(lambda: (scale.index_select(0, indices) * scale[0]).float()) / entries
    keys = np.random.default_rng(0).integers(0, 2**40, 2**18)
    return Speed(
        gather=gather,
        entry=max(narrow - 4 * gather, 0.0),
        normalise=2 * normalise,
        sort=_seconds(partial(np.sort, keys)) / len(keys),
        disk=_disk_seconds(existing_parent(folder)),
    )


def existing_parent(path: Path) -> Path:
    """Return ``path``, or the nearest parent folder that exists."""
    folder = path.resolve()
    while not folder.exists():
        folder = folder.parent
    return folder


def _seconds(work: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _disk_seconds(folder: Path, size: int = 2**25) -> float:
    """Return the seconds per byte of writing a temporary file, synchronised to disk."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            start = time.perf_counter()
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())
            return (time.perf_counter() - start) / size
    except OSError:
        return _DISK_SECONDS_PER_BYTE
