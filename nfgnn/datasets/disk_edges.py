"""Links made two-way, sorted and unique when they do not fit into memory.

The same result as :func:`nfgnn.datasets.edges.undirected`, by a bucket sort on disk: every link is written in
both directions into the bucket of its row range, then each bucket, small enough for memory, is sorted. Needs
three times the size of the result on disk for a while, and memory for a few blocks only.
"""

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap

_BINS = 2**16  # row ranges that links are counted in; neighbouring ones are joined to buckets


def undirected_on_disk(edges: np.ndarray, num_nodes: int, target: Path, block: int = 2**25) -> None:
    """Write the sorted symmetric edge list of ``edges`` [2, E] as ``target`` (``.npy``, int64 [2, 2E']).

    Args:
        edges: node numbers, usually a memory map.
        num_nodes: number of nodes.
        target: the file to write; it appears only when it is complete.
        block: links handled at a time; a bucket is larger only if a single row range is.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    keys_file, part = (target.with_name(f"{target.name}.{os.getpid()}.{end}") for end in ("keys", "part"))
    width = max(1, -(-num_nodes // _BINS))
    counts = np.zeros(_BINS, dtype=np.int64)
    for row, _ in _two_way(edges, block):
        counts += np.bincount(row // width, minlength=_BINS)
    bucket_of_bin = np.cumsum(counts) // block
    starts = np.searchsorted(bucket_of_bin, np.arange(bucket_of_bin[-1] + 2))
    offsets = np.append(0, np.cumsum(counts))[starts]
    try:
        keys = open_memmap(keys_file, mode="w+", dtype=np.int64, shape=(max(1, int(counts.sum())),))
        _scatter(edges, keys, offsets, bucket_of_bin, width, num_nodes, block)
        total = _sort_buckets(keys, offsets)
        out = open_memmap(part, mode="w+", dtype=np.int64, shape=(2, total))
        for start in range(0, total, block):
            stop = min(start + block, total)
            out[0, start:stop], out[1, start:stop] = np.divmod(keys[start:stop], num_nodes)
        out.flush()
        part.replace(target)
    finally:
        keys_file.unlink(missing_ok=True)
        part.unlink(missing_ok=True)


def _two_way(edges: np.ndarray, block: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of links in both directions, without self-loops."""
    for start in range(0, edges.shape[1], block):
        source, target = np.asarray(edges[:, start : start + block], dtype=np.int64)
        keep = source != target
        source, target = source[keep], target[keep]
        yield np.concatenate([source, target]), np.concatenate([target, source])


def _scatter(
    edges: np.ndarray,
    keys: np.ndarray,
    offsets: np.ndarray,
    bucket_of_bin: np.ndarray,
    width: int,
    num_nodes: int,
    block: int,
) -> None:
    fill = offsets[:-1].copy()
    for row, col in _two_way(edges, block):
        bucket = bucket_of_bin[row // width]
        order = np.argsort(bucket, kind="stable")
        key = (row * num_nodes + col)[order]
        bounds = np.searchsorted(bucket[order], np.arange(len(fill) + 1))
        for b in np.flatnonzero(np.diff(bounds)):
            size = bounds[b + 1] - bounds[b]
            keys[fill[b] : fill[b] + size] = key[bounds[b] : bounds[b + 1]]
            fill[b] += size


def _sort_buckets(keys: np.ndarray, offsets: np.ndarray) -> int:
    """Sort each bucket, drop what is double, and close the gaps; return how many are left."""
    total = 0
    for start, stop in pairwise(offsets):
        unique = np.unique(keys[start:stop])
        keys[total : total + len(unique)] = unique
        total += len(unique)
    return total
