"""A graph in one ``.npz`` file, never unpickled.

Two families of keys are supported: those of the heterophilous-graphs study (``edges`` [E, 2],
``node_features``, ``node_labels`` and perhaps ``train_masks``, ``val_masks``, ``test_masks``
[splits, n]), and sparse matrices by their CSR parts ``node_features_data``, ``…_indices``,
``…_indptr``, ``…_shape``. Their prefix may also be ``attr_`` for features and ``adj_`` for edges,
as in gnn-benchmark, or missing, as SciPy's ``save_npz`` writes them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from nfgnn.data.labels import encode_labels
from nfgnn.data.large_graph import LargeGraph
from nfgnn.data.paths import files_fingerprint
from nfgnn.data.readers.csr_parts import compact_csr, csr_from_parts
from nfgnn.data.readers.mapped_arrays import edge_blocks, map_member, row_blocks, scratch_folder
from nfgnn.errors import UserError

_KEYS = "edges, node_features, node_labels (and train_masks, val_masks, test_masks)"


def read_npz(path: Path) -> Data:
    """Read a graph from one file."""
    arrays = _read_arrays(path)
    edge_index, weight = _edges(arrays, path.name)
    data = Data(edge_index=torch.from_numpy(edge_index), x=_features(arrays, path.name))
    if weight is not None:
        data.edge_weight = torch.from_numpy(weight)
    labels = arrays.get("node_labels", arrays.get("labels"))
    if labels is not None:
        data.y = labels  # of any kind: validation encodes them
    for part in ("train", "val", "test"):
        mask = arrays.get(f"{part}_masks", arrays.get(f"{part}_mask"))
        if mask is not None:
            mask = _numeric(mask, f"{part}_masks", path.name)
            data[f"{part}_mask"] = torch.from_numpy(np.ascontiguousarray(mask.T))
    for key in ("class_names", "feature_names"):
        if key in arrays:
            data[key] = arrays[key].astype(str).tolist()
    if "node_ids" in arrays:
        data.node_ids = arrays["node_ids"]
    return data


def read_npz_folder(folder: Path, files: tuple[str, ...]) -> Data:
    """Read a data set that is published as one ``.npz`` file."""
    return read_npz(folder / files[0])


def read_gnn_benchmark(folder: Path, files: tuple[str, ...]) -> Data:
    """Read the Amazon and Coauthor graphs.

    As in PyTorch Geometric positive features become 1, and edges are undirected.
    """
    path = folder / files[0]
    arrays = _read_arrays(path)
    x = compact_csr(_sparse(arrays, "attr_", path.name))
    x.data[x.data > 0] = 1
    edge_index, _ = remove_self_loops(torch.from_numpy(_edges(arrays, path.name)[0]))
    labels = _numeric(arrays["labels"], "labels", path.name).astype(np.int64)
    edge_index = to_undirected(edge_index, num_nodes=x.shape[0])
    return Data(x=x, edge_index=edge_index, y=torch.from_numpy(labels))


def open_npz(path: Path) -> LargeGraph:
    """Open a file with ``edges``, ``node_features`` and ``node_labels`` for reading in blocks."""
    scratch = scratch_folder(path.stem, path)
    x = map_member(path, "node_features", scratch)
    edges = map_member(path, "edges", scratch)
    labels = np.array(map_member(path, "node_labels", scratch))
    y, class_names = encode_labels(labels, f"{path.name}, node_labels")
    return LargeGraph(
        name=path.stem,
        source=str(path.resolve()),
        fingerprint=files_fingerprint(path),
        num_nodes=len(x),
        num_features=x.shape[1],
        num_edges=edges.size // 2,
        y=y,
        class_names=class_names,
        edges=edge_blocks(edges, path.name),
        features=lambda rows: row_blocks(x, rows, path.name),
        masks=_mapped_masks(path, scratch, len(x)),
    )


def _mapped_masks(path: Path, scratch: Path, num_nodes: int) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        keys = set(file.files)
    masks = {}
    for part in ("train", "val", "test"):
        for key in (f"{part}_mask", f"{part}_masks"):
            if key in keys:
                mask = np.array(map_member(path, key, scratch), dtype=bool)
                mask = mask if mask.shape[0] == num_nodes else mask.T
                masks[f"{part}_mask"] = np.ascontiguousarray(mask)
    return masks


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    arrays = {}
    with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
        for key in file.files:
            try:
                arrays[key] = np.asarray(file[key])
            except ValueError as error:
                if "pickle" not in str(error).lower():
                    raise
                raise UserError(
                    f"{path.name}: the key {key!r} contains Python objects, which are not loaded; "
                    "save numbers or text."
                ) from None
    return arrays


def _edges(arrays: dict[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the edges [2, E] and their weights."""
    if "edges" in arrays:
        edges = _numeric(arrays["edges"], "edges", name)
        if edges.ndim != 2 or 2 not in edges.shape:
            raise UserError(
                f"{name}: `edges` has shape {list(edges.shape)}; [edges, 2] is required."
            )
        edges = np.ascontiguousarray(edges.T if edges.shape[1] == 2 else edges)
        if "edge_weights" not in arrays:
            return edges, None
        return edges, _numeric(arrays["edge_weights"], "edge_weights", name)
    if "adj_indptr" in arrays:
        adjacency = _sparse(arrays, "adj_", name).tocoo()
        return np.stack([adjacency.row, adjacency.col]).astype(np.int64), None
    raise UserError(
        f"{name}: there is no key 'edges' (found: {', '.join(arrays) or 'none'}); "
        f"the keys are {_KEYS}."
    )


def _features(arrays: dict[str, np.ndarray], name: str) -> Any:
    if "node_features" in arrays:
        return torch.from_numpy(_numeric(arrays["node_features"], "node_features", name))
    for prefix in ("node_features_", "attr_", ""):
        if f"{prefix}indptr" in arrays:
            return _sparse(arrays, prefix, name)
    return None


def _sparse(arrays: dict[str, np.ndarray], prefix: str, name: str) -> Any:
    """Return the CSR matrix whose four parts have this prefix."""
    parts = []
    for part in ("data", "indices", "indptr", "shape"):
        key = prefix + part
        if key not in arrays:
            raise UserError(f"{name}: the key {key!r} of a sparse matrix is missing.")
        parts.append(_numeric(arrays[key], key, name))
    return csr_from_parts(parts, f"{name}: {prefix or 'the sparse matrix'}")


def _numeric(array: np.ndarray, key: str, name: str) -> np.ndarray:
    """Return numbers of a type that torch supports."""
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise UserError(f"{name}: `{key}` has type {array.dtype}; numbers are required.")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        return array.astype(np.int64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
