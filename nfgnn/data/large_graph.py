"""Graphs that do not fit into memory: read in blocks, never whole.

:func:`open_large` gives a :class:`LargeGraph`, which `nfgnn precompute` walks over. It knows three forms: a folder with
``nodes`` and ``edges`` (Parquet or CSV) whose ids are the row numbers, an ``.npz`` file with ``x``, ``edge_index`` and
``y``, and the raw files of ogbn-papers100M. Only labels and masks, a few bytes per node, are held in memory.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nfgnn.data.external_sort import Links, Report, csr_on_disk
from nfgnn.data.paths import find
from nfgnn.data.readers.batches import column_names, count_rows
from nfgnn.data.readers.folder import Columns
from nfgnn.data.readers.tables import find_table
from nfgnn.data.registry import REGISTRY, canonical_name

_PAPERS = "ogbn-papers100m"


@dataclass(frozen=True)
class LargeGraph:
    """A graph that is read in blocks of rows and of links."""

    name: str
    source: str
    """Where it lies."""
    fingerprint: str
    num_nodes: int
    num_features: int
    num_links: int
    """As listed: before they are made two-way and unique."""
    y: np.ndarray
    """int64 [n], -1 where there is no label."""
    class_names: list[str]
    links: Links
    features: Callable[[int], Iterator[np.ndarray]]
    """Blocks of at most so many rows of the features, float32."""
    masks: dict[str, np.ndarray] = field(default_factory=dict)
    metric: str = "accuracy"

    @property
    def num_entries(self) -> int:
        """An upper bound of the entries of the adjacency matrix: every listed link in both directions."""
        return 2 * self.num_links

    def write_pattern(self, folder: Path, memory: int, self_loops: bool, report: Report) -> None:
        """The adjacency matrix in compressed rows, by external sorting."""
        csr_on_disk(
            self.links, self.num_nodes, folder, memory=memory, self_loops=self_loops, report=report
        )


def files_mark(*files: Path) -> str:
    """A fingerprint of files that are too large to be read for it: place, size, time of change."""
    mark = hashlib.sha256()
    for file in files:
        stat = file.stat()
        mark.update(f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return mark.hexdigest()


def loaded_bytes(source: str | Path, root: str | Path | None = None) -> int:
    """About how much memory :func:`nfgnn.data.load_dataset` would need for this; 0 where :func:`open_large` has no
    reader for it."""
    path = Path(source).expanduser()
    if path.is_dir() and any(path.glob("edges.*")):
        return sum(_table_bytes(find_table(path, stem)) for stem in ("nodes", "edges"))
    if path.suffix == ".npz" and path.is_file():
        return 4 * path.stat().st_size
    if canonical_name(str(source)) == _PAPERS and find(REGISTRY[_PAPERS], root) is not None:
        return 4 * 10**11
    return 0


def _table_bytes(path: Path) -> int:
    """A guess on the high side: parsing, numbering and sorting at once."""
    if path.suffix == ".parquet":
        return 20 * count_rows(path) * max(5, len(column_names(path)))
    return 12 * path.stat().st_size


def open_large(
    source: str | Path, root: str | Path | None = None, **options: Any
) -> LargeGraph | None:
    """The graph in blocks, or ``None`` where there is no such reader for it.

    Args:
        source: as for :func:`nfgnn.data.load_dataset`.
        root: the same.
        **options: names of columns, the same.
    """
    from nfgnn.data.readers.large_arrays import npz_in_blocks, papers_in_blocks
    from nfgnn.data.readers.large_tables import tables_in_blocks

    path = Path(source).expanduser()
    if path.is_dir() and any(path.glob("edges.*")):
        return tables_in_blocks(path, Columns(**options))
    if path.suffix == ".npz" and path.is_file():
        return npz_in_blocks(path)
    folder = find(REGISTRY[_PAPERS], root) if canonical_name(str(source)) == _PAPERS else None
    return None if folder is None else papers_in_blocks(REGISTRY[_PAPERS], folder)
