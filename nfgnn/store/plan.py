r"""What will be done, before it is done: how the work is cut to fit a budget of memory, and what it costs.

With n nodes, m entries of the adjacency matrix, f features, w columns per block, r kept rows, in bytes:

============  ==============================================  ==========================================
cut           memory beside the libraries                     disk traffic per product
============  ==============================================  ==========================================
``resident``  8m + 20n for the operator, 8nw for two terms    none
``streamed``  8n, buffers, 4nw for one term                   4m for the operator, 12nw for three terms
============  ==============================================  ==========================================

Either way there are K products for each of the f/w blocks of columns, which are independent of each other. On disk lie
the graph (4m + 16n), the features (4nf), and the terms (r (K + 1) f values) twice while they are put in order.
"""

import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from nfgnn.errors import UserError
from nfgnn.store.calibrate import Speed
from nfgnn.store.manifest import DTYPES

NOMINAL = Speed(gather=1e-9, entry=4e-9, normalise=1e-8, sort=7e-8, disk=1e-9)
"""Speeds that decide between the cuts, of one core and a disk of 1 GB/s."""
_SAFE = 0.94  # of the budget is planned with; the rest is for what a plan does not see
_FIXED = 160 * 2**20  # bytes of passing buffers: normalising, sorting rows into place, reading
_BYTES_PER_ENTRY = 44  # of a row block that is normalised and multiplied


@dataclass(frozen=True)
class Settings:
    """What to compute, in how much memory."""

    basis: str = "chebyshev"
    K: int = 10
    memory: int = 4 * 10**9
    rows: str = "labelled"
    dtype: str = "float32"
    features: str = "auto"
    self_loops: bool = False
    lambda_max: float = 2.0
    device: str = "cpu"


@dataclass(frozen=True)
class Plan:
    """How the work is cut, and what it will take."""

    cut: str
    device: str
    num_nodes: int
    num_entries: int
    num_rows: int
    num_features: int
    K: int
    width: int
    """Columns per block."""
    stream_entries: int
    """Entries of the operator that are read at a time (``streamed``)."""
    memory_bytes: int
    """Expected peak of resident memory."""
    disk_bytes: int
    """Needed at the worst moment."""
    store_bytes: int
    read_bytes: int
    written_bytes: int
    seconds: float
    free_bytes: int

    @property
    def bounds(self) -> list[int]:
        """Where the blocks of columns begin, and the end."""
        return [*range(0, self.num_features, self.width), self.num_features]

    @property
    def blocks(self) -> int:
        return len(self.bounds) - 1

    @property
    def products(self) -> int:
        return self.K * self.blocks

    def summary(self) -> dict[str, object]:
        return {**asdict(self), "blocks": self.blocks, "products": self.products}


def make_plan(
    num_nodes: int, num_entries: int, num_features: int, num_rows: int, settings: Settings, *,
    base: int, speed: Speed, out: Path, device_memory: int = 0, parts: int = 1,
) -> Plan:  # fmt: skip
    """Choose the cut that takes the least time within the budget.

    The choice is made with nominal speeds: what a busy machine measures in a moment may differ by a factor of two, and
    the same command should do the same work again. The times that are stated come from ``speed``.

    Args:
        num_nodes, num_entries, num_features: size of the graph.
        num_rows: rows that are kept.
        settings: what to compute.
        base: memory that the process holds already.
        speed: of this machine.
        out: the store's folder, for the free space of its disk.
        device_memory: bytes that may be used on the GPU; 0 for none.
        parts: blocks that there should be at least, for as many workers.
    """
    n, m, f = num_nodes, num_entries, num_features
    room = int(settings.memory * _SAFE) - base - _FIXED - 8 * num_rows
    stream = int(min(2**22, max(2**19, room // 8 // _BYTES_PER_ENTRY)))
    widths = {
        "resident": (room - 8 * m - 20 * n) // (8 * n) if m < 2**31 else 0,
        "streamed": (room - 8 * n - stream * _BYTES_PER_ENTRY) // (4 * n),
    }
    if device_memory and 44 * m + 16 * n < device_memory:
        widths = {"device": int(device_memory * _SAFE - 44 * m - 16 * n) // (20 * n)}
    widths = {
        cut: _even(f, min(int(width), -(-f // parts)))
        for cut, width in widths.items()
        if width >= 1
    }
    if not widths:
        least = (base + _FIXED + 8 * num_rows + 12 * n + 2**19 * _BYTES_PER_ENTRY) / _SAFE
        raise UserError(
            f"--memory {settings.memory / 1e9:.2g}GB is too little: one column of {n:,} nodes needs "
            f"{np.ceil(least / 1e7) / 100:.2f}GB"
        )
    cut = min(
        widths, key=lambda name: -(-f // widths[name]) * NOMINAL.product(m, n, widths[name], name)
    )
    width = widths[cut]
    blocks = -(-f // width)
    terms = settings.K * blocks * speed.product(m, n, width, cut)
    store = num_rows * (settings.K + 1) * f * np.dtype(DTYPES[settings.dtype][1]).itemsize
    states = 12 * n * width if cut == "streamed" else 0
    graph = 4 * m + 16 * n
    streamed = (
        settings.K * blocks * (4 * m + 8 * n * width) if cut == "streamed" else blocks * graph
    )
    moved = {
        "read": int(8 * m + 8 * n * f + streamed + store),
        "written": int(
            12 * m + 4 * n * f + (settings.K * 4 * n * f if cut == "streamed" else 0) + 2 * store
        ),
    }
    held = {
        "resident": 8 * m + 20 * n + 8 * n * width,
        "streamed": 8 * n + 4 * n * width + stream * _BYTES_PER_ENTRY,
    }
    return Plan(
        cut=cut, device="cuda" if cut == "device" else "cpu", num_nodes=n, num_entries=m, num_rows=num_rows,
        num_features=f, K=settings.K, width=width, stream_entries=stream,
        memory_bytes=base + _FIXED + 8 * num_rows + held.get(cut, 0),
        disk_bytes=max(12 * m + 8 * n, graph + 4 * n * f + states + store, 2 * store), store_bytes=store,
        read_bytes=moved["read"], written_bytes=moved["written"],
        seconds=terms + speed.rest(m, moved["read"], moved["written"]), free_bytes=free_space(out),
    )  # fmt: skip


def parse_memory(text: str) -> int:
    """Bytes of ``4GB``, ``512MiB``, ``2.5 GB`` or a plain number."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?)(i?)b?\s*", text.lower())
    try:
        number = float(match[1]) if match else 0.0
    except ValueError:
        number = 0.0
    if match is None or number <= 0:
        raise UserError(f"--memory {text} is not understood: write a size such as 4GB or 512MB")
    return int(number * (1024 if match[3] else 1000) ** " kmgt".index(match[2] or " "))


def _even(features: int, width: int) -> int:
    """The least width that needs no more blocks than this one."""
    blocks = -(-features // min(width, features))
    return -(-features // blocks)


def free_space(path: Path) -> int:
    """Free bytes of the disk on which ``path`` will lie."""
    place = path.resolve()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free
