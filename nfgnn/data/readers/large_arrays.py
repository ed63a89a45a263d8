"""Large graphs in arrays: an ``.npz`` file of one's own and the raw files of ogbn-papers100M, read in blocks."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nfgnn.data.entry import Entry
from nfgnn.data.external_sort import Links
from nfgnn.data.labels import encode_labels
from nfgnn.data.large_graph import LargeGraph, files_mark
from nfgnn.data.readers.mapped import map_member, scratch_folder
from nfgnn.data.readers.ogb import split_masks
from nfgnn.errors import UserError


def npz_in_blocks(path: Path) -> LargeGraph:
    """An ``.npz`` with ``edges`` [E, 2] or [2, E], ``node_features`` and ``node_labels``, as ``read_npz`` takes it."""
    scratch = scratch_folder(path.stem, path)
    x, edges = (map_member(path, key, scratch) for key in ("node_features", "edges"))
    labels = np.array(map_member(path, "node_labels", scratch))
    y, class_names = encode_labels(labels, f"{path.name}, node_labels")
    return LargeGraph(
        name=path.stem, source=str(path.resolve()), fingerprint=files_mark(path), num_nodes=len(x),
        num_features=x.shape[1], num_links=edges.size // 2, y=y, class_names=class_names,
        links=_links(edges, path.name), features=lambda rows: _row_blocks(x, rows, path.name),
        masks=_masks(path, scratch, len(x)),
    )  # fmt: skip


def papers_in_blocks(entry: Entry, folder: Path) -> LargeGraph:
    """ogbn-papers100M: 111 million nodes, of which 1.5 million have a label."""
    archive, scratch = folder / "raw/data.npz", scratch_folder(entry.name, folder / "raw/data.npz")
    x, edges = (map_member(archive, key, scratch) for key in ("node_feat", "edge_index"))
    labels = np.array(map_member(folder / "raw/node-label.npz", "node_label", scratch)).reshape(-1)
    y, class_names = encode_labels(labels, f"{entry.name}, node_label")
    files = [folder / file for file in entry.required]
    return LargeGraph(
        name=entry.name, source=str(folder.resolve()), fingerprint=files_mark(*files), num_nodes=len(x),
        num_features=x.shape[1], num_links=edges.shape[1], y=y, class_names=class_names,
        links=_links(edges, entry.name), features=lambda rows: _row_blocks(x, rows, entry.name),
        masks=split_masks(entry, folder, len(x)), metric=entry.metric,
    )  # fmt: skip


def _read(array: np.ndarray, first: int, last: int) -> np.ndarray:
    """A stretch of a mapped array's values, read without touching the map: its pages would count as our memory."""
    if not isinstance(array, np.memmap) or array.filename is None:
        flat: np.ndarray = array.reshape(-1)[first:last]
        return flat
    return np.fromfile(
        array.filename, array.dtype, last - first, offset=array.offset + first * array.itemsize
    )


def _links(edges: np.ndarray, name: str) -> Links:
    if edges.ndim != 2 or 2 not in edges.shape or edges.dtype.kind not in "iu":
        raise UserError(f"{name}: the links have shape {list(edges.shape)} and type {edges.dtype}; [2, links] of node "
                        "numbers is needed.")  # fmt: skip
    edges = edges if edges.flags.c_contiguous else edges.T
    count, by_row = edges.size // 2, edges.shape[0] == 2

    def blocks(size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for first in range(0, count, size):
            last = min(first + size, count)
            if by_row:
                yield _read(edges, first, last), _read(edges, count + first, count + last)
            else:
                pairs = _read(edges, 2 * first, 2 * last).reshape(-1, 2)
                yield pairs[:, 0], pairs[:, 1]

    return blocks


def _row_blocks(x: np.ndarray, rows: int, name: str) -> Iterator[np.ndarray]:
    n, f = x.shape
    if not x.flags.c_contiguous:
        raise UserError(
            f"{name}: the features lie column by column; save them with np.ascontiguousarray."
        )
    for first in range(0, n, rows):
        block = (
            _read(x, first * f, min(first + rows, n) * f)
            .reshape(-1, f)
            .astype(np.float32, copy=False)
        )
        if not np.isfinite(block.sum()) and not np.isfinite(block).all():
            row, column = np.argwhere(~np.isfinite(block))[0]
            raise UserError(f"{name}: the feature in row {first + row}, column {column} (counted from 0) is "
                            f"{block[row, column]}; fill the gap or drop the column.")  # fmt: skip
        yield block


def _masks(path: Path, scratch: Path, n: int) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        present = set(file.files)
    found = {}
    for part in ("train", "val", "test"):
        key = next((k for k in (f"{part}_masks", f"{part}_mask") if k in present), None)
        if key is not None:
            mask = np.array(map_member(path, key, scratch), dtype=bool)
            found[f"{part}_mask"] = np.ascontiguousarray(mask.T if mask.shape[0] != n else mask)
    return found
