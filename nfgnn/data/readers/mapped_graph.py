"""Graphs of arrays that exceed the memory: an ``.npz`` file, or a folder of ``.npy`` files.

:mod:`nfgnn.data.readers.npz` lists the keys. Only labels, masks, ids and names are in memory.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from nfgnn.data.external_sort import EdgeBlocks
from nfgnn.data.labels import UNLABELLED, encode_labels
from nfgnn.data.large_graph import LargeGraph
from nfgnn.data.paths import files_fingerprint
from nfgnn.data.readers.csr_blocks import CsrBlocks
from nfgnn.data.readers.mapped_arrays import (
    edge_blocks,
    map_member,
    read_range,
    row_blocks,
    scratch_folder,
)
from nfgnn.data.readers.npz import CSR_PARTS, CSR_PREFIXES, numeric
from nfgnn.data.readers.npz_members import member_sizes
from nfgnn.errors import UserError
from nfgnn.npyfile import NpyFile

Member = Callable[[str], np.ndarray]
"""Map the array of a key, or refuse a missing one."""


def open_npz(path: Path) -> LargeGraph:
    """Open one file for reading in blocks."""
    scratch = scratch_folder(path.stem, path)
    keys = _member_names(path)
    return _open(path, path.stem, keys, lambda key: map_member(path, key, scratch), [path])


def open_array_folder(folder: Path) -> LargeGraph:
    """Open a folder with one ``.npy`` file per array for reading in blocks."""
    keys = {file.stem for file in folder.glob("*.npy")}
    parts = [prefix + part for prefix in (*CSR_PREFIXES, "adj_") for part in CSR_PARTS]
    names = ["edges", "edge_weights", "node_features", "node_labels", "labels", *parts]
    files = [folder / f"{name}.npy" for name in names if name in keys]
    return _open(folder, folder.name, keys, lambda key: _map(folder / f"{key}.npy"), files)


def _member_names(path: Path) -> set[str]:
    try:
        return set(member_sizes(path))
    except Exception:  # a damaged file can fail in any way, and mapping an array reports it
        return set()


def _map(path: Path) -> np.ndarray:
    """Map an array after checking that the file is complete."""
    with NpyFile.open(path) as file:
        return np.memmap(path, file.dtype, "r", file.start, file.shape)


def _open(
    path: Path, name: str, keys: Collection[str], member: Member, files: list[Path]
) -> LargeGraph:
    """Open the graph with these arrays; ``files`` determine its fingerprint."""
    features = _features(keys, member, path)
    edges = _edges(keys, member, path.name)
    y, class_names = _labels(keys, member, features.shape[0], path.name)
    fingerprint = files_fingerprint(*files)
    if edges.weighted:
        fingerprint += "-weighted"  # earlier versions ignored the weights
    feature_names = None
    if "feature_names" in keys:
        feature_names = member("feature_names").astype(str).tolist()
    return LargeGraph(
        name=name,
        source=str(path.resolve()),
        fingerprint=fingerprint,
        num_nodes=features.shape[0],
        num_features=features.shape[1],
        num_edges=edges.count,
        y=y,
        class_names=class_names,
        edges=edges.blocks,
        features=features.blocks,
        weighted=edges.weighted,
        sparse_features=features.is_sparse,
        masks=_masks(keys, member, features.shape[0]),
        feature_names=feature_names,
        node_ids=pa.array(np.array(member("node_ids"))) if "node_ids" in keys else None,
    )


@dataclass(frozen=True)
class _Features:
    shape: tuple[int, int]
    blocks: Callable[[int], Iterator[np.ndarray]]
    is_sparse: bool


@dataclass(frozen=True)
class _Edges:
    count: int
    blocks: EdgeBlocks
    weighted: bool


def _features(keys: Collection[str], member: Member, path: Path) -> _Features:
    prefixes = [prefix for prefix in CSR_PREFIXES if f"{prefix}indptr" in keys]
    if prefixes and "node_features" not in keys:
        matrix = _csr_blocks(prefixes[0], member, path.name)
        return _Features(matrix.shape, matrix.dense_rows, matrix.is_sparse)
    x = member("node_features")
    if x.ndim != 2:
        raise UserError(
            f"{path}: node_features has the shape {list(x.shape)}; save a matrix [nodes, features]."
        )
    return _Features(x.shape, lambda rows: row_blocks(x, rows, path.name), False)


def _edges(keys: Collection[str], member: Member, name: str) -> _Edges:
    if "adj_indptr" in keys and "edges" not in keys:
        adjacency = _csr_blocks("adj_", member, name)
        return _Edges(adjacency.num_entries, adjacency.edges, False)
    edges = member("edges")
    weighted = "edge_weights" in keys
    weight = member("edge_weights") if weighted else None
    return _Edges(edges.size // 2, edge_blocks(edges, name, weight), weighted)


def _csr_blocks(prefix: str, member: Member, name: str) -> CsrBlocks:
    """Open the CSR matrix whose four parts have this prefix."""
    parts = {part: member(prefix + part) for part in CSR_PARTS}
    where = f"{name}: {prefix or 'the sparse matrix'}"
    shape = parts["shape"].tolist()
    valid = all(part.ndim == 1 for part in parts.values())
    valid &= all(parts[part].dtype.kind in "iu" for part in ("indices", "indptr", "shape"))
    valid = valid and len(shape) == 2 and len(parts["indptr"]) == shape[0] + 1
    if not valid or len(parts["data"]) != len(parts["indices"]):
        raise UserError(
            f"{where}: data, indices, indptr and shape do not describe a CSR matrix; create the "
            "file again."
        )

    def read(part: str, first: int, last: int) -> np.ndarray:
        return numeric(read_range(parts[part], first, last), prefix + part, name)

    return CsrBlocks(read, (shape[0], shape[1]), len(parts["indices"]), where)


def _labels(
    keys: Collection[str], member: Member, num_nodes: int, name: str
) -> tuple[np.ndarray, list[str]]:
    """Return the labels and the class names, as validation finds them in memory."""
    names: list[str] = []
    if "class_names" in keys:
        names = member("class_names").astype(str).tolist()
    key = "labels" if "labels" in keys and "node_labels" not in keys else "node_labels"
    if key not in keys:
        return np.full(num_nodes, UNLABELLED), names
    labels = np.array(member(key))
    if labels.shape != (num_nodes,):
        raise UserError(
            f"{name}: {key} has the shape {list(labels.shape)}; one class per node, "
            f"shape [{num_nodes}], is required."
        )
    are_numbers = bool(names) and labels.dtype.kind in "iu"
    if are_numbers and labels.min() >= UNLABELLED and labels.max() < len(names):
        return labels.astype(np.int64), names
    return encode_labels(labels, f"{name}, {key}")


def _masks(keys: Collection[str], member: Member, num_nodes: int) -> dict[str, np.ndarray]:
    masks = {}
    for part in ("train", "val", "test"):
        for key in (f"{part}_mask", f"{part}_masks"):
            if key in keys:
                mask = np.array(member(key), dtype=bool)
                mask = mask if mask.shape[0] == num_nodes else mask.T
                masks[f"{part}_mask"] = np.ascontiguousarray(mask)
    return masks
