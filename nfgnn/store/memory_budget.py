r"""The memory budget of `nfgnn precompute`: what fits into it, and how the process keeps to it.

The option ``--memory`` limits the resident memory of the process, libraries included. With n nodes,
m entries of the adjacency matrix and w columns per block, the cuts need, in bytes:

============  =============================================  ================
cut           memory for the graph                           memory for terms
============  =============================================  ================
``resident``  8m + 20n: the operator                         8nw: two terms
``streamed``  8n and a buffer: the operator stays on disk    4nw: one term
``device``    8m + 36 min(m, 2²⁶) + 16n of GPU memory        20nw
============  =============================================  ================

Edge weights take 8m bytes more, except with the streamed cut. A GPU reorders the graph in blocks of
2²⁶ entries, which takes 36 bytes per entry for a moment.
"""

import ctypes
import os
import re
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from nfgnn.errors import UserError

_PLANNED_SHARE = 0.94  # of the budget; the rest is a reserve for what the formulas do not cover
_BUFFER_BYTES = 160 * 2**20  # temporary buffers: normalising, gathering rows, reading
_BYTES_PER_STREAMED_ENTRY = 44  # while a block of rows is normalised and multiplied
_REORDERED_ENTRIES = 2**26  # that a GPU reorders at a time
_MIN_STREAMED_ENTRIES = 2**19
_MAX_STREAMED_ENTRIES = 2**22
_MAX_PART_WIDTH = 1024
_M_TRIM_THRESHOLD = -1  # parameters of mallopt(3)
_M_MMAP_THRESHOLD = -3


@dataclass(frozen=True)
class MemoryBudget:
    """Decide how many columns of a graph can be computed at a time.

    Args:
        limit: bytes of memory that the process may use.
        held: bytes that the process holds before the work starts.
        num_nodes: number of nodes.
        num_entries: entries of the adjacency matrix.
        num_rows: rows that are stored.
        device_limit: free bytes of GPU memory; 0 if no GPU is used.
        weighted: whether the edges have weights.
    """

    limit: int
    held: int
    num_nodes: int
    num_entries: int
    num_rows: int
    device_limit: int = 0
    weighted: bool = False

    @property
    def available(self) -> int:
        """Memory for the operator and the terms."""
        return int(self.limit * _PLANNED_SHARE) - self._overhead

    @property
    def stream_entries(self) -> int:
        """Entries of the operator that the streamed cut reads at a time."""
        entries = self.available // 8 // _BYTES_PER_STREAMED_ENTRY
        return min(_MAX_STREAMED_ENTRIES, max(_MIN_STREAMED_ENTRIES, entries))

    @property
    def part_width(self) -> int:
        """Columns of float64 values of all nodes that fit while parts of rows are computed."""
        free = self.available - self._graph_bytes("streamed")
        return max(1, min(_MAX_PART_WIDTH, free // (8 * self.num_nodes)))

    @property
    def minimum(self) -> float:
        """The smallest limit with which the graph can be processed: streamed, one column."""
        buffer = _MIN_STREAMED_ENTRIES * _BYTES_PER_STREAMED_ENTRY
        return (self._overhead + 12 * self.num_nodes + buffer) / _PLANNED_SHARE

    def max_widths(self) -> dict[str, int]:
        """Return the possible cuts, and how many columns per block fit with each."""
        n = self.num_nodes
        m = self.num_entries
        on_device = self._entry_bytes * m + 36 * min(m, _REORDERED_ENTRIES) + 16 * n
        if self.device_limit > on_device:
            free = int(self.device_limit * _PLANNED_SHARE - on_device)
            widths = {"device": free // (20 * n)}
        else:
            widths = {
                "resident": (self.available - self._graph_bytes("resident")) // (8 * n),
                "streamed": (self.available - self._graph_bytes("streamed")) // (4 * n),
            }
            if m >= 2**31:  # beyond the 32-bit indices of an operator in memory
                del widths["resident"]
        return {cut: width for cut, width in widths.items() if width >= 1}

    def peak(self, cut: str, width: int) -> int:
        """Return the expected peak of resident memory."""
        if cut == "device":
            return self._overhead
        terms = (8 if cut == "resident" else 4) * self.num_nodes * width
        return self._overhead + self._graph_bytes(cut) + terms

    @property
    def _overhead(self) -> int:
        return self.held + _BUFFER_BYTES + 8 * self.num_rows

    @property
    def _entry_bytes(self) -> int:
        """Bytes per entry of an operator in memory."""
        return 16 if self.weighted else 8

    def _graph_bytes(self, cut: str) -> int:
        if cut == "resident":
            return self._entry_bytes * self.num_entries + 20 * self.num_nodes
        return 8 * self.num_nodes + self.stream_entries * _BYTES_PER_STREAMED_ENTRY


def parse_memory(text: str) -> int:
    """Return the number of bytes in ``4GB``, ``512MiB``, ``2.5 GB`` or a plain number."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([kmgt]?)(i?)b?\s*", text.lower())
    number = float(match[1]) if match else 0.0
    if match is None or number <= 0:
        raise UserError(f"--memory {text} is not a size: use a value such as 4GB or 512MB")
    unit = 1024 if match[3] else 1000
    return int(number * unit ** " kmgt".index(match[2] or " "))


def resident_bytes() -> int:
    """Return the memory that this process holds, or its peak where the system reports only that."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def remaining_memory(limit: int) -> int:
    """Return how much of a limit a stage may use, at least a quarter of it."""
    return max(limit - resident_bytes(), limit // 4)


def return_freed_memory() -> None:
    """Configure the allocators to return freed buffers to the system.

    glibc raises the size above which it returns buffers with every buffer that it returns, up to
    32 MB. Smaller buffers then stay with the process, up to a quarter of a gigabyte. The allocator
    of Arrow keeps as much, so Arrow uses the one of the C library instead.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # a C library other than glibc
        return
    mallopt(_M_MMAP_THRESHOLD, 2**20)
    mallopt(_M_TRIM_THRESHOLD, 2**20)
