"""Make edges undirected, sorted and unique on disk, when they exceed the memory.

The result is the one of :func:`nfgnn.data.edges.undirected` as a CSR matrix in files. Three passes,
each in bounded memory, write it:

1. *count* the edges per range of rows, and join the ranges to buckets that fit into memory;
2. *scatter* both directions of every edge into the bucket of its row, as the key row · n + column;
3. *sort* one bucket after the other, drop duplicates, and append the columns to the result.

Weights are sorted together with the keys. The sign of a weight encodes the direction in which its
edge was listed, because the weights of both directions are averaged.

After every block and every bucket a small file records the progress. Work that was interrupted
resumes there, and later writes go to the same places again. The keys take 8 bytes per directed edge
on disk, the result 4. Weights add 8 to both.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from nfgnn.data.edges import MAX_NODES, check_weights, round_weights
from nfgnn.errors import UserError
from nfgnn.npyfile import NpyFile

EdgeBlocks = Callable[[int], Iterator[tuple[np.ndarray, ...]]]
"""Iterate over (sources, targets) in blocks of about the given size, always in the same order.

Weighted edges are (sources, targets, weights).
"""
Report = Callable[[str, int, int], None]
"""Receive progress: the name of the stage, the amount done, and the total (0 if unknown)."""

_BINS = 2**16  # ranges of rows in which edges are counted
_BYTES_PER_EDGE = 224  # memory per edge of a block while it is scattered, with a reserve
_BYTES_PER_WEIGHTED_EDGE = 320
_BYTES_PER_KEY = 40  # memory per key of a bucket while it is sorted
_BYTES_PER_WEIGHTED_KEY = 88


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
    ones: bool = True  # whether all weights so far are 1


@dataclass(frozen=True)
class _Entries:
    """Entries of the adjacency matrix, duplicates included."""

    row: np.ndarray
    col: np.ndarray
    weight: np.ndarray | None = None  # negative for the reverse of a listed edge


def csr_on_disk(
    edges: EdgeBlocks,
    num_nodes: int,
    folder: Path,
    *,
    memory: int = 2**30,
    self_loops: bool = False,
    weighted: bool = False,
    report: Report = lambda stage, done, total: None,
) -> None:
    """Write ``indptr.npy`` (int64) and ``indices.npy`` (int32) of the symmetric adjacency matrix.

    Weights that are not all 1 are written to ``weight.npy``: values of float32 in float64.

    Args:
        edges: the edges in blocks; self-loops among them are dropped.
        num_nodes: number of nodes.
        folder: the folder of the files, which appear when they are complete. A second call
            resumes interrupted work.
        memory: bytes that the sort may use.
        self_loops: add a self-loop to every node, of weight 1.
        weighted: whether the edges have weights.
        report: receives the progress.
    """
    if num_nodes > MAX_NODES:
        raise UserError(f"the graph has {num_nodes:,} nodes; at most {MAX_NODES:,} are supported.")
    if (folder / "indices.npy").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    per_edge = _BYTES_PER_WEIGHTED_EDGE if weighted else _BYTES_PER_EDGE
    per_key = _BYTES_PER_WEIGHTED_KEY if weighted else _BYTES_PER_KEY
    block = max(1, memory // per_edge)
    sort = _Sort(edges, num_nodes, folder, block, self_loops, weighted, report)
    sort.count(max(1, memory // per_key))
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
        weighted: bool,
        report: Report,
    ) -> None:
        self.edges = edges
        self.n = num_nodes
        self.folder = folder
        self.self_loops = self_loops
        self.weighted = weighted
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
        for done, entries in enumerate(self._both_directions()):
            counts += np.bincount(entries.row // self.bin_width, minlength=len(counts))
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
        with ExitStack() as files:
            keys = files.enter_context(self._create("keys.npy", np.int64))
            weights = None
            if self.weighted:
                weights = files.enter_context(self._create("weights.npy", np.float64))
            for block, entries in enumerate(self._both_directions()):
                if block < state.blocks:
                    continue
                self._scatter_block(entries, keys, weights)
                keys.sync()
                if weights is not None:
                    weights.sync()
                state.blocks = block + 1
                self._save()
                self.report("scattering edges", sum(state.fill) - sum(state.offsets[:-1]), num_keys)
        state.stage = "sort"
        self._save()

    def _scatter_block(self, entries: _Entries, keys: NpyFile, weights: NpyFile | None) -> None:
        """Append the entries of one block to their buckets."""
        fill = self.state.fill
        first_rows = np.array(self.state.bins[1:-1]) * self.bin_width
        bucket = np.searchsorted(first_rows, entries.row, side="right").astype(np.uint16)
        order = np.argsort(bucket, kind="stable")
        bounds = np.append(0, np.cumsum(np.bincount(bucket, minlength=len(fill))))
        key = (entries.row * self.n + entries.col)[order]
        weight = None if entries.weight is None else entries.weight[order]
        for b in np.flatnonzero(np.diff(bounds)).tolist():
            part = slice(bounds[b], bounds[b + 1])
            keys.write(fill[b], key[part])
            if weights is not None and weight is not None:
                weights.write(fill[b], weight[part])
            fill[b] += int(bounds[b + 1] - bounds[b])

    def sort(self) -> None:
        state = self.state
        # indices.npy gets its name last: it says that all of them are complete.
        names = ["indptr", "weight", "indices"] if self.weighted else ["indptr", "indices"]
        parts = {name: self.folder / f"{name}.part" for name in names}
        if state.stage == "sort":
            with ExitStack() as files:
                out = {
                    "indptr": NpyFile.create(parts["indptr"], np.int64, (self.n + 1,)),
                    "indices": self._create("indices.part", np.int32),
                }
                if self.weighted:
                    out["weight"] = self._create("weight.part", np.float64)
                for file in out.values():
                    files.enter_context(file)
                out["indptr"].write(0, np.zeros(1))
                self._sort_buckets(out)
                for name, file in out.items():
                    file.finish(None if name == "indptr" else state.total)
            state.stage = "name"
            self._save()
        if self.weighted and state.ones:
            parts["weight"].unlink(missing_ok=True)
        for name, part in parts.items():
            if part.is_file():
                part.replace(self.folder / f"{name}.npy")
        for name in ("keys.npy", "weights.npy", "sort.json"):
            (self.folder / name).unlink(missing_ok=True)

    def _sort_buckets(self, out: dict[str, NpyFile]) -> None:
        state = self.state
        buckets = zip(pairwise(state.bins), pairwise(state.offsets))
        for bucket, ((first, last), (start, stop)) in enumerate(buckets):
            if bucket < state.buckets:
                continue
            entries = self._sorted_bucket(start, stop)
            low = first * self.bin_width
            high = min(last * self.bin_width, self.n)
            ends = np.cumsum(np.bincount(entries.row - low, minlength=high - low))
            out["indptr"].write(low + 1, state.total + ends)
            out["indices"].write(state.total, entries.col)
            if entries.weight is not None:
                out["weight"].write(state.total, entries.weight)
                state.ones &= bool((entries.weight == 1).all())
            for file in out.values():
                file.sync()
            state.total += len(entries.col)
            state.buckets = bucket + 1
            self._save()
            self.report("sorting edges", stop, state.offsets[-1])

    def _sorted_bucket(self, start: int, stop: int) -> _Entries:
        """Return the entries of one bucket, sorted and unique."""
        with NpyFile.open(self.folder / "keys.npy") as keys:
            key = keys.read(start, stop)
        weight = None
        if self.weighted:
            with NpyFile.open(self.folder / "weights.npy") as weights:
                key, weight = _merge_weights(key, weights.read(start, stop))
        else:
            key.sort()
            keep = np.ones(len(key), dtype=bool)
            np.not_equal(key[1:], key[:-1], out=keep[1:])
            key = key[keep]
        row = key // self.n
        key -= row * self.n
        return _Entries(row, key.astype(np.int32), weight)

    def _both_directions(self) -> Iterator[_Entries]:
        """Iterate over blocks of edges in both directions, then over the requested self-loops."""
        done = 0
        for block in self.edges(self.state.block):
            source, target = (self._check(end) for end in block[:2])
            keep = source != target
            weight = None
            if self.weighted:
                weight = check_weights(block[2], len(source), "edges", done)
                keep &= weight.astype(np.float32) != 0
                weight = weight[keep]
            done += len(source)
            source = source[keep]
            target = target[keep]
            # Duplicates stay in the order of the list, in which their weights are added up.
            yield _Entries(
                _alternating(source, target),
                _alternating(target, source),
                None if weight is None else _alternating(weight, -weight),
            )
        if self.self_loops:
            for start in range(0, self.n, self.state.block):
                loops = np.arange(start, min(start + self.state.block, self.n))
                yield _Entries(loops, loops, np.ones(len(loops)) if self.weighted else None)

    def _create(self, name: str, dtype: type[np.generic]) -> NpyFile:
        """Open a file with one value per entry for writing."""
        return NpyFile.create(self.folder / name, dtype, (self.state.offsets[-1],))

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


def _alternating(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.stack([first, second], axis=1).reshape(-1)


def _merge_weights(key: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort keys and merge equal ones, as :func:`nfgnn.data.edges.undirected` merges weights."""
    order = np.argsort(key, kind="stable")
    key = key[order]
    weight = weight[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    both = np.minimum.reduceat(weight, first) < 0
    both &= np.maximum.reduceat(weight, first) > 0
    total = np.add.reduceat(np.abs(weight), first)
    total[both] /= 2
    return key[first], round_weights(total).astype(np.float64)


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
