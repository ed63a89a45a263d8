"""How fast this machine is: a second of measuring, for the times that a plan states."""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

_DEVICE_BYTES = 2.0e12  # per second that a GPU gathers; a guess until the first product


@dataclass(frozen=True)
class Speed:
    """Seconds per unit of work."""

    gather: float
    """Per entry and column of a sparse product."""
    entry: float
    """Per entry of a sparse product, whatever the columns."""
    normalise: float
    """Per entry that is normalised."""
    sort: float
    """Per entry that is sorted."""
    disk: float
    """Per byte of the disk."""

    def product(self, entries: int, nodes: int, width: int, cut: str) -> float:
        """Seconds of one sparse product."""
        if cut == "device":
            return entries * (4 + 4 * width) / _DEVICE_BYTES
        seconds = entries * (self.entry + width * self.gather)
        if cut == "streamed":
            seconds += entries * self.normalise + (4 * entries + 12 * nodes * width) * self.disk
        return seconds

    def rest(self, entries: int, read: int, written: int) -> float:
        """Seconds of sorting, and of reading and writing beside the products."""
        return 3 * entries * self.sort + (read + written) * self.disk / 2


def calibrate(nodes: int, folder: Path) -> Speed:
    """Measure on random rows of at most ``nodes`` nodes, and on a file in ``folder``."""
    n, degree = min(nodes, 2**20), 8
    rows = min(n, 2**16)
    generator = torch.Generator().manual_seed(0)
    indices = torch.randint(n, (rows * degree,), generator=generator, dtype=torch.int32)
    indptr = torch.arange(0, rows * degree + 1, degree, dtype=torch.int32)
    matrix = torch.sparse_csr_tensor(
        indptr, indices, torch.ones(rows * degree), (rows, n), check_invariants=False
    )
    tables = [torch.ones(n, width) for width in (4, 16)]
    narrow, wide = (_seconds(partial(torch.mm, matrix, x)) / indices.numel() for x in tables)
    gather = max((wide - narrow) / 12, 1e-11)
    scale, keys = (
        torch.ones(n, dtype=torch.float64),
        np.random.default_rng(0).integers(0, 2**40, 2**18),
    )
    normalise = (
        _seconds(lambda: (scale.index_select(0, indices) * scale[0]).float()) / indices.numel()
    )
    sort = _seconds(lambda: np.sort(keys)) / len(keys)
    return Speed(gather, max(narrow - 4 * gather, 0.0), 2 * normalise, sort, _disk(folder))


def _seconds(work: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _disk(folder: Path, size: int = 2**25) -> float:
    """Seconds per byte written and waited for."""
    place = folder.resolve()
    while not place.exists():
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            start = time.perf_counter()
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())
            return (time.perf_counter() - start) / size
    except OSError:
        return 2e-9
