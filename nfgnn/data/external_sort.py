"""Links made two-way, sorted and unique when they do not fit into memory: a CSR matrix on disk by external sorting.

The same links as :func:`nfgnn.data.edges.undirected` gives, in three passes, each in bounded memory:

1. *count* the links per range of rows, and join ranges to buckets that fit into memory;
2. *scatter* every link, in both directions, into the bucket of its row, as the number row · n + column;
3. *sort* bucket after bucket, drop what is double, and append the columns to the result.

After every block and every bucket a small file says how far the work has come, and whatever is written after it is
written again to the same place: work that was killed goes on where it stopped. On disk it needs 8 bytes per directed
link beside the result's 4.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from nfgnn.errors import UserError
from nfgnn.npyfile import NpyFile

Links = Callable[[int], Iterator[tuple[np.ndarray, np.ndarray]]]
"""Gives the links (sources, targets) in blocks of about so many, from the first on, the same ones every time."""
Report = Callable[[str, int, int], None]
"""Is told of progress: what is done, how far, of how many."""

_BINS = 2**16  # row ranges that links are counted in
_BYTES_PER_LINK = 224  # of memory, for a link of a block while it is scattered: the arrays alive at once, and room
_BYTES_PER_KEY = 40  # the same for a key of a bucket while it is sorted


@dataclass
class _State:
    """How far a sort has come."""

    block: int  # links handled at a time: the same after a restart, since blocks are counted
    stage: str = "count"
    blocks: int = 0  # scattered
    fill: list[int] = field(default_factory=list)  # where each bucket goes on
    bins: list[int] = field(default_factory=list)  # first bin of every bucket, and the end
    offsets: list[int] = field(default_factory=list)  # of the buckets in the file of keys
    buckets: int = 0  # sorted
    total: int = 0  # entries of the result so far


def csr_on_disk(
    links: Links,
    num_nodes: int,
    folder: Path,
    *,
    memory: int = 2**30,
    self_loops: bool = False,
    report: Report = lambda what, done, total: None,
) -> None:
    """Write ``indptr.npy`` (int64) and ``indices.npy`` (int32) of the symmetric pattern of these links.

    Args:
        links: the links in blocks; self-loops among them are dropped.
        num_nodes: number of nodes.
        folder: where to; the two files appear only when they are complete. A second call after a kill goes on.
        memory: bytes that the sort may use.
        self_loops: add a loop to every node.
        report: told of progress.
    """
    if num_nodes > 2**31 - 1:
        raise UserError(f"the graph has {num_nodes:,} nodes; at most {2**31 - 1:,} can be indexed.")
    if (folder / "indices.npy").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    sort = _Sort(links, num_nodes, folder, max(1, memory // _BYTES_PER_LINK), self_loops, report)
    sort.count(max(1, memory // _BYTES_PER_KEY))
    sort.scatter()
    sort.sort()


class _Sort:
    def __init__(
        self,
        links: Links,
        num_nodes: int,
        folder: Path,
        block: int,
        self_loops: bool,
        report: Report,
    ) -> None:
        self.links, self.n, self.folder = links, num_nodes, folder
        self.self_loops, self.report = self_loops, report
        self.width = max(1, -(-num_nodes // _BINS))
        place = folder / "sort.json"
        self.state = _State(**json.loads(place.read_text())) if place.is_file() else _State(block)
        self.block = self.state.block

    def count(self, bucket_size: int) -> None:
        state = self.state
        if state.stage != "count":
            return
        counts = np.zeros(-(-self.n // self.width), dtype=np.int64)
        for done, (row, _) in enumerate(self._two_way()):
            counts += np.bincount(row // self.width, minlength=len(counts))
            self.report("counting links", done + 1, 0)
        bucket_of_bin = np.maximum(np.cumsum(counts) - 1, 0) // bucket_size
        state.bins = [*np.flatnonzero(np.diff(bucket_of_bin, prepend=-1)).tolist(), len(counts)]
        state.offsets = np.append(0, np.cumsum(counts))[state.bins].tolist()
        state.fill, state.stage = list(state.offsets[:-1]), "scatter"
        self._save()

    def scatter(self) -> None:
        state = self.state
        if state.stage != "scatter":
            return
        starts = np.array(state.bins[1:-1]) * self.width
        with NpyFile.create(self.folder / "keys.npy", np.int64, (state.offsets[-1],)) as keys:
            for block, (row, col) in enumerate(self._two_way()):
                if block < state.blocks:
                    continue
                bucket = np.searchsorted(starts, row, side="right").astype(np.uint16)
                order = np.argsort(bucket, kind="stable")
                bounds = np.append(0, np.cumsum(np.bincount(bucket, minlength=len(state.fill))))
                key = (row * self.n + col)[order]
                for b in np.flatnonzero(np.diff(bounds)).tolist():
                    part = key[bounds[b] : bounds[b + 1]]
                    keys.write(state.fill[b], part)
                    state.fill[b] += len(part)
                keys.sync()
                state.blocks = block + 1
                self._save()
                self.report(
                    "scattering links", sum(state.fill) - sum(state.offsets[:-1]), state.offsets[-1]
                )
        state.stage = "sort"
        self._save()

    def sort(self) -> None:
        state, parts = (
            self.state,
            {name: self.folder / f"{name}.part" for name in ("indptr", "indices")},
        )
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
        for name, part in parts.items():  # the second name says that both are there
            if part.is_file():
                part.replace(self.folder / f"{name}.npy")
        for name in ("keys.npy", "sort.json"):
            (self.folder / name).unlink(missing_ok=True)

    def _sort_buckets(self, keys: NpyFile, indices: NpyFile, indptr: NpyFile) -> None:
        state = self.state
        for bucket, ((first, last), (start, stop)) in enumerate(
            zip(pairwise(state.bins), pairwise(state.offsets))
        ):
            if bucket < state.buckets:
                continue
            row, col = self._sorted(keys.read(start, stop))
            low, high = first * self.width, min(last * self.width, self.n)
            ends = state.total + np.cumsum(np.bincount(row - low, minlength=high - low))
            indices.write(state.total, col)
            indptr.write(low + 1, ends)
            indices.sync()
            indptr.sync()
            state.total, state.buckets = state.total + len(col), bucket + 1
            self._save()
            self.report("sorting links", stop, state.offsets[-1])

    def _sorted(self, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns (int32) of one bucket, sorted and unique."""
        key.sort()
        keep = np.ones(len(key), dtype=bool)
        np.not_equal(key[1:], key[:-1], out=keep[1:])
        key = key[keep]
        row = key // self.n
        key -= row * self.n
        return row, key.astype(np.int32)

    def _two_way(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Blocks of links in both directions, without self-loops; then the loops that were asked for."""
        for source, target in self.links(self.block):
            s, t = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
            self._check(s, t)
            keep = s != t
            s, t = s[keep], t[keep]
            yield np.concatenate([s, t]), np.concatenate([t, s])
        for start in range(0, self.n, self.block) if self.self_loops else ():
            loops = np.arange(start, min(start + self.block, self.n))
            yield loops, loops

    def _check(self, *ends: np.ndarray) -> None:
        for end in ends:
            if len(end) and (end.min() < 0 or end.max() >= self.n):
                bad = end[(end < 0) | (end >= self.n)][0]
                raise UserError(
                    f"a link names node {bad}, but the {self.n:,} nodes are numbered 0 … {self.n - 1}."
                )

    def _save(self) -> None:
        partial = self.folder / "sort.json.partial"
        partial.write_text(json.dumps(asdict(self.state)))
        partial.replace(self.folder / "sort.json")


def undirected_on_disk(edges: np.ndarray, num_nodes: int, target: Path, block: int = 2**22) -> None:
    """Write the sorted symmetric edge list of ``edges`` [2, E] as ``target`` (``.npy``, int64 [2, 2E']).

    Args:
        edges: node numbers, usually a memory map.
        num_nodes: number of nodes.
        target: the file to write; it appears only when it is complete.
        block: links handled at a time.
    """
    work = target.with_name(f"{target.name}.sort")

    def links(_: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, edges.shape[1], block):
            yield edges[0, start : start + block], edges[1, start : start + block]

    csr_on_disk(links, num_nodes, work, memory=block * _BYTES_PER_LINK)
    indptr, indices = (
        np.load(work / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices")
    )
    partial = target.with_name(f"{target.name}.part")
    out = np.lib.format.open_memmap(partial, mode="w+", dtype=np.int64, shape=(2, len(indices)))
    for start in range(0, num_nodes, block):
        bounds = indptr[start : start + block + 1]
        out[0, bounds[0] : bounds[-1]] = np.repeat(
            np.arange(start, start + len(bounds) - 1), np.diff(bounds)
        )
        out[1, bounds[0] : bounds[-1]] = indices[bounds[0] : bounds[-1]]
    out.flush()
    partial.replace(target)
    shutil.rmtree(work)
