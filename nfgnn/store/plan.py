r"""Plan the work: how it is divided to fit the memory budget, and what it costs.

Columns are independent of each other, so they are computed in blocks of w columns. The *cut* says
where the operator is kept meanwhile: ``resident`` in memory, ``streamed`` from disk in blocks of
rows for every product, or ``device`` in GPU memory. :mod:`nfgnn.store.memory_budget` gives the
width that fits with each cut; the plan takes the cut that needs the least time.

With n nodes, m entries of the adjacency matrix, f features and r stored rows, each of the f/w
blocks needs K products. A streamed product moves 8m bytes for the operator and 12nw for three terms
between disk and memory, the others nothing. The disk holds the graph (4m + 16n bytes; 8m + 16n to
stream it), the features (4nf) and the terms (r (K + 1) f values), which exist twice while rows are
assembled. A part of c columns besides the terms adds r c values, and passes over the graph
(4m + 16n bytes): one for the sketch or the degree, 1 + 2c/p for two-hop neighbours and f/p for the
agreement, where p columns of float64 values of all nodes fit into memory.
Edge weights take 8m bytes more on disk, and 16m more while the edges are sorted.
"""

import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from nfgnn.errors import UserError
from nfgnn.spectral import RowParts
from nfgnn.store.file_format import DTYPES
from nfgnn.store.machine_speed import NOMINAL, Speed, existing_parent
from nfgnn.store.memory_budget import MemoryBudget

_PART_NODE_BYTES = 16  # for the lengths of vectors and sums of all nodes
_VECTOR = 4  # columns that the processor computes at a time


@dataclass(frozen=True)
class Settings:
    """What to compute, and the memory for it: the options of `nfgnn precompute`."""

    basis: str = "chebyshev"
    K: int = 10
    memory: int = 4 * 10**9
    rows: str = "labelled"
    dtype: str = "float32"
    features: str = "auto"
    self_loops: bool = False
    lambda_max: float = 2.0
    device: str = "cpu"
    serve: bool = False
    """Whether the store keeps the graph, so that new nodes can be attached to it."""
    sketch: int = 0
    """Columns of the sketch of the adjacency matrix; 0 stores none."""
    two_hop: int = 0
    """Columns of the sketch of two-hop neighbours; 0 stores none."""
    degree: bool = False
    """Whether rows hold the logarithm of the degree."""
    agreement: bool = False
    """Whether rows hold the mean cosine between a node and its neighbours."""

    @property
    def parts(self) -> RowParts:
        """The parts of a row besides the terms."""
        return RowParts(self.sketch, self.two_hop, self.degree, self.agreement)


@dataclass(frozen=True)
class Plan:
    """How the work is divided, and what it is expected to cost."""

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
    """Largest use of disk space during the work."""
    store_bytes: int
    read_bytes: int
    written_bytes: int
    seconds: float
    free_bytes: int
    graph_bytes: int = 0
    """Bytes of the graph that a store for serving keeps."""
    part_bytes: dict[str, int] = field(default_factory=dict)
    """Bytes of the parts of the stored rows, which add up to ``store_bytes``."""
    part_width: int = 1
    """Columns of all nodes that are kept in memory while a part of the rows is computed."""

    @property
    def bounds(self) -> list[int]:
        """First column of every block, followed by the number of columns."""
        return [*range(0, self.num_features, self.width), self.num_features]

    @property
    def blocks(self) -> int:
        """Number of column blocks."""
        return len(self.bounds) - 1

    @property
    def products(self) -> int:
        """Number of sparse products."""
        return self.K * self.blocks

    def summary(self) -> dict[str, object]:
        """Return all values as a dictionary for JSON."""
        return {**asdict(self), "blocks": self.blocks, "products": self.products}


def make_plan(
    num_nodes: int,
    num_entries: int,
    num_features: int,
    num_rows: int,
    settings: Settings,
    *,
    base: int,
    speed: Speed,
    out: Path,
    device_memory: int = 0,
    parts: int = 1,
    weighted: bool = False,
) -> Plan:
    """Choose the cut that needs the least time within the memory budget.

    The choice uses nominal speeds, because a measurement on a busy machine can be off by a factor
    of two and the same command should always do the same work. The predicted time uses ``speed``.

    Args:
        num_nodes: number of nodes.
        num_entries: entries of the adjacency matrix.
        num_features: number of features.
        num_rows: rows that are stored.
        settings: what to compute.
        base: bytes of memory that the process already holds.
        speed: speed of this machine.
        out: folder of the store; its disk is checked for free space.
        device_memory: free bytes of GPU memory; 0 if no GPU is used.
        parts: number of blocks to aim at, where there are enough features.
        weighted: whether the edges have weights.
    """
    n = num_nodes
    m = num_entries
    f = num_features
    held = base + (_PART_NODE_BYTES * n if _needs_sums(settings) else 0)
    budget = MemoryBudget(settings.memory, held, n, m, num_rows, device_memory, weighted)
    cut, width = _choose_cut(budget, f, parts)
    blocks = _ceil_div(f, width)
    products = settings.K * blocks

    weights = 8 * m if weighted else 0
    graph = 4 * m + 16 * n + weights
    itemsize = DTYPES[settings.dtype].itemsize
    terms = num_rows * (settings.K + 1) * f * itemsize
    part_bytes = {"terms": terms}
    for name, columns in settings.parts.columns.items():
        part_bytes[name] = num_rows * columns * itemsize
    parts_bytes = sum(part_bytes.values()) - terms
    passes = _passes(settings, f, width, budget.part_width)
    read = 8 * m + weights + 8 * n * f + terms + sum(passes.values()) * graph
    written = 12 * m + 2 * weights + 4 * n * f + 2 * terms + parts_bytes
    unscaled = 4 * num_rows * settings.two_hop
    read += unscaled
    written += unscaled
    if settings.agreement:
        read += 4 * n * f * (1 + _ceil_div(width, budget.part_width))
    scratch = 0
    preparing = 0.0
    if cut == "streamed":
        read += 4 * m + weights + products * (8 * m + 8 * n * width)
        written += 4 * m + settings.K * 4 * n * f
        scratch = 4 * m + 12 * n * width
        preparing = m * speed.normalise
    else:
        read += blocks * graph
    sorting = 12 * m + 8 * n + 2 * weights
    computing = graph + 4 * n * f + scratch + terms + parts_bytes + unscaled
    kept = graph if settings.serve else 0
    return Plan(
        cut=cut,
        device="cuda" if cut == "device" else "cpu",
        num_nodes=n,
        num_entries=m,
        num_rows=num_rows,
        num_features=f,
        K=settings.K,
        width=width,
        stream_entries=budget.stream_entries,
        memory_bytes=budget.peak(cut, width),
        disk_bytes=max(sorting, computing, 2 * terms + parts_bytes + kept),
        store_bytes=terms + parts_bytes,
        read_bytes=read,
        written_bytes=written,
        seconds=preparing
        + settings.K * _product_seconds(speed, budget, f, width, cut)
        + speed.product(m, n, _summed_columns(settings, f), "resident")
        + speed.rest(m, read, written),
        free_bytes=shutil.disk_usage(existing_parent(out)).free,
        graph_bytes=kept,
        part_bytes=part_bytes,
        part_width=budget.part_width,
    )


def _needs_sums(settings: Settings) -> bool:
    """Whether a part adds up values over the neighbours of every node."""
    return settings.two_hop > 0 or settings.agreement


def _summed_columns(settings: Settings, features: int) -> int:
    """Return the number of columns that are added up over neighbours."""
    return settings.two_hop + (features if settings.agreement else 0)


def _passes(settings: Settings, features: int, width: int, part_width: int) -> dict[str, int]:
    """Return how often every part reads the graph."""
    passes = dict.fromkeys(settings.parts.columns, 1)
    if settings.two_hop:
        passes["two_hop"] += 2 * _ceil_div(settings.two_hop, part_width)
    if settings.agreement:
        passes["agreement"] = _ceil_div(features, width) * _ceil_div(width, part_width)
    return passes


def _choose_cut(budget: MemoryBudget, features: int, parts: int) -> tuple[str, int]:
    """Return the fastest cut and its width."""
    widths = {}
    for cut, width in budget.max_widths().items():
        widths[cut] = _even_width(features, min(width, _ceil_div(features, parts)))
    if not widths:
        needed = np.ceil(budget.minimum / 1e7) / 100
        raise UserError(
            f"--memory {budget.limit / 1e9:.2g}GB is too small: one column of "
            f"{budget.num_nodes:,} nodes needs {needed:.2f}GB"
        )

    def seconds(cut: str) -> float:
        return _product_seconds(NOMINAL, budget, features, widths[cut], cut)

    best = min(widths, key=seconds)
    return best, widths[best]


def _product_seconds(
    speed: Speed, budget: MemoryBudget, features: int, width: int, cut: str
) -> float:
    """Return the seconds of one product for every block; the last block may be narrower."""
    seconds = 0.0
    for first in range(0, features, width):
        columns = min(width, features - first)
        seconds += speed.product(budget.num_entries, budget.num_nodes, columns, cut)
    return seconds


def _even_width(features: int, width: int) -> int:
    """Return a width of at most ``width`` that divides the features evenly.

    Several blocks have a multiple of 4 columns, because a product with 7 columns takes longer than
    one with 8.
    """
    if width >= features:
        return features
    if width < _VECTOR:
        return _ceil_div(features, _ceil_div(features, width))
    widest = width // _VECTOR
    blocks = _ceil_div(features, widest * _VECTOR)
    return _VECTOR * _ceil_div(features, blocks * _VECTOR)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)
