"""Make edges undirected, sorted and unique on disk, when they exceed the memory.

The result is the one of :func:`nfgnn.data.edges.undirected` as a CSR matrix in files. Three passes,
each in bounded memory, write it:

1. *count* the edges per range of rows, and join the ranges to buckets that fit into memory;
2. *scatter* both directions of every edge into the bucket of its row, as the key row · n + column;
3. *sort* one bucket after the other, drop duplicates, and append the columns to the result.

After every block and every bucket a small file records the progress. Work that was interrupted
resumes there, and later writes go to the same places again. The keys take 8 bytes per directed edge
on disk, the result 4.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from nfgnn.data.edges import MAX_NODES
from nfgnn.errors import UserError
from nfgnn.npyfile import NpyFile

EdgeBlocks = Callable[[int], Iterator[tuple[np.ndarray, np.ndarray]]]
"""Iterate over (sources, targets) in blocks of about the given size, always in the same order."""
Report = Callable[[str, int, int], None]
"""Receive progress: the name of the stage, the amount done, and the total (0 if unknown)."""

_BINS = 2**16  # ranges of rows in which edges are counted
_BYTES_PER_EDGE = 224  # memory per edge of a block while it is scattered, with a reserve
_BYTES_PER_KEY = 40  # memory per key of a bucket while it is sorted


@dataclass
class _State:
    """The progress of a sort. Its fields are the keys of ``sort.json``."""

    block: int  # edges per block; constant, because finished blocks are counted
    stage: str = "count"
    blocks: int = 0  # scattered blocks
    fill: list[int] = field(default_factory=list)  # next free place of every bucket
    bins: list[int] = field(default_factory=list)  # first bin of every bucket, and the end
    offsets: list[int] = field(default_factory=list)  # of the buckets in the file of keys
    buckets: int = 0  # sorted buckets
    total: int = 0  # entries of the result so far


def csr_on_disk(
    edges: EdgeBlocks,
    num_nodes: int,
    folder: Path,
    *,
    memory: int = 2**30,
    self_loops: bool = False,
    report: Report = lambda stage, done, total: None,
) -> None:
    """Write ``indptr.npy`` (int64) and ``indices.npy`` (int32) of the symmetric adjacency matrix.

    Args:
        edges: the edges in blocks; self-loops among them are dropped.
        num_nodes: number of nodes.
        folder: the folder of the two files, which appear when they are complete. A second call
            resumes interrupted work.
        memory: bytes that the sort may use.
        self_loops: add a self-loop to every node.
        report: receives the progress.
    """
    if num_nodes > MAX_NODES:
        raise UserError(f"the graph has {num_nodes:,} nodes; at most {MAX_NODES:,} are supported.")
    if (folder / "indices.npy").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    sort = _Sort(edges, num_nodes, folder, max(1, memory // _BYTES_PER_EDGE), self_loops, report)
    sort.count(max(1, memory // _BYTES_PER_KEY))
    sort.scatter()
    sort.sort()


class _Sort:
    def __init__(
        self,
        edges: EdgeBlocks,
        num_nodes: int,
        folder: Path,
        block: int,
        self_loops: bool,
        report: Report,
    ) -> None:
        self.edges = edges
        self.n = num_nodes
        self.folder = folder
        self.self_loops = self_loops
        self.report = report
        self.bin_width = max(1, -(-num_nodes // _BINS))
        self.state = _State(block)
        if (folder / "sort.json").is_file():
            self.state = _State(**json.loads((folder / "sort.json").read_text()))

    def count(self, bucket_size: int) -> None:
        state = self.state
        if state.stage != "count":
            return
        counts = np.zeros(-(-self.n // self.bin_width), dtype=np.int64)
        for done, (row, _) in enumerate(self._both_directions()):
            counts += np.bincount(row // self.bin_width, minlength=len(counts))
            self.report("counting edges", done + 1, 0)
        bucket_of_bin = np.maximum(np.cumsum(counts) - 1, 0) // bucket_size
        first_bins = np.flatnonzero(np.diff(bucket_of_bin, prepend=-1))
        state.bins = [*first_bins.tolist(), len(counts)]
        state.offsets = np.append(0, np.cumsum(counts))[state.bins].tolist()
        state.fill = list(state.offsets[:-1])
        state.stage = "scatter"
        self._save()

    def scatter(self) -> None:
        state = self.state
        if state.stage != "scatter":
            return
        num_keys = state.offsets[-1]
        with NpyFile.create(self.folder / "keys.npy", np.int64, (num_keys,)) as keys:
            for block, (row, col) in enumerate(self._both_directions()):
                if block < state.blocks:
                    continue
                self._scatter_block(row, col, keys)
                keys.sync()
                state.blocks = block + 1
                self._save()
                self.report("scattering edges", sum(state.fill) - sum(state.offsets[:-1]), num_keys)
        state.stage = "sort"
        self._save()

    def _scatter_block(self, row: np.ndarray, col: np.ndarray, keys: NpyFile) -> None:
        """Append the keys of one block to their buckets."""
        fill = self.state.fill
        first_rows = np.array(self.state.bins[1:-1]) * self.bin_width
        bucket = np.searchsorted(first_rows, row, side="right").astype(np.uint16)
        order = np.argsort(bucket, kind="stable")
        bounds = np.append(0, np.cumsum(np.bincount(bucket, minlength=len(fill))))
        key = (row * self.n + col)[order]
        for b in np.flatnonzero(np.diff(bounds)).tolist():
            part = key[bounds[b] : bounds[b + 1]]
            keys.write(fill[b], part)
            fill[b] += len(part)

    def sort(self) -> None:
        state = self.state
        parts = {name: self.folder / f"{name}.part" for name in ("indptr", "indices")}
        if state.stage == "sort":
            indptr = NpyFile.create(parts["indptr"], np.int64, (self.n + 1,))
            indices = NpyFile.create(parts["indices"], np.int32, (state.offsets[-1],))
            with NpyFile.open(self.folder / "keys.npy") as keys, indices, indptr:
                indptr.write(0, np.zeros(1))
                self._sort_buckets(keys, indices, indptr)
                indptr.finish()
                indices.finish(state.total)
            state.stage = "name"
            self._save()
        for name, part in parts.items():  # indices.npy is last: it says that both are complete
            if part.is_file():
                part.replace(self.folder / f"{name}.npy")
        for name in ("keys.npy", "sort.json"):
            (self.folder / name).unlink(missing_ok=True)

    def _sort_buckets(self, keys: NpyFile, indices: NpyFile, indptr: NpyFile) -> None:
        state = self.state
        buckets = zip(pairwise(state.bins), pairwise(state.offsets))
        for bucket, ((first, last), (start, stop)) in enumerate(buckets):
            if bucket < state.buckets:
                continue
            row, col = self._sort_keys(keys.read(start, stop))
            low = first * self.bin_width
            high = min(last * self.bin_width, self.n)
            ends = state.total + np.cumsum(np.bincount(row - low, minlength=high - low))
            indices.write(state.total, col)
            indptr.write(low + 1, ends)
            indices.sync()
            indptr.sync()
            state.total += len(col)
            state.buckets = bucket + 1
            self._save()
            self.report("sorting edges", stop, state.offsets[-1])

    def _sort_keys(self, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and columns (int32) of one bucket, sorted and unique."""
        key.sort()
        keep = np.ones(len(key), dtype=bool)
        np.not_equal(key[1:], key[:-1], out=keep[1:])
        key = key[keep]
        row = key // self.n
        key -= row * self.n
        return row, key.astype(np.int32)

    def _both_directions(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Iterate over blocks of edges in both directions, then over the requested self-loops."""
        for block in self.edges(self.state.block):
            source, target = (self._check(end) for end in block)
            keep = source != target
            source = source[keep]
            target = target[keep]
            yield np.concatenate([source, target]), np.concatenate([target, source])
        if self.self_loops:
            for start in range(0, self.n, self.state.block):
                loops = np.arange(start, min(start + self.state.block, self.n))
                yield loops, loops

    def _check(self, end: np.ndarray) -> np.ndarray:
        end = np.asarray(end, dtype=np.int64)
        if len(end) and (end.min() < 0 or end.max() >= self.n):
            node = end[(end < 0) | (end >= self.n)][0]
            raise UserError(
                f"an edge contains node {node}, "
                f"but the {self.n:,} nodes are numbered 0 … {self.n - 1}."
            )
        return end

    def _save(self) -> None:
        partial = self.folder / "sort.json.partial"
        partial.write_text(json.dumps(asdict(self.state)))
        partial.replace(self.folder / "sort.json")


def undirected_on_disk(edges: np.ndarray, num_nodes: int, target: Path, block: int = 2**22) -> None:
    """Write the sorted symmetric edge list of ``edges`` [2, E] to a file, int64 [2, 2E'].

    Args:
        edges: node numbers, usually a memory map.
        num_nodes: number of nodes.
        target: the ``.npy`` file, which appears when it is complete.
        block: edges per block.
    """
    work = target.with_name(f"{target.name}.sort")

    def blocks(_: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, edges.shape[1], block):
            yield edges[0, start : start + block], edges[1, start : start + block]

    csr_on_disk(blocks, num_nodes, work, memory=block * _BYTES_PER_EDGE)
    indptr = np.load(work / "indptr.npy", mmap_mode="r")
    indices = np.load(work / "indices.npy", mmap_mode="r")
    partial = target.with_name(f"{target.name}.part")
    out = np.lib.format.open_memmap(partial, mode="w+", dtype=np.int64, shape=(2, len(indices)))
    for start in range(0, num_nodes, block):
        bounds = indptr[start : start + block + 1]
        part = slice(bounds[0], bounds[-1])
        out[0, part] = np.repeat(np.arange(start, start + len(bounds) - 1), np.diff(bounds))
        out[1, part] = indices[part]
    out.flush()
    partial.replace(target)
    shutil.rmtree(work)
