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

from nfgnn.data.messages import few
from nfgnn.data.readers.csr_parts import compact_csr, csr_from_parts
from nfgnn.data.readers.npz_members import member_sizes, read_members
from nfgnn.errors import UserError

CSR_PREFIXES = ("node_features_", "attr_", "")
"""Of features, in order of precedence."""
CSR_PARTS = ("data", "indices", "indptr", "shape")
ARRAYS = {
    *("edges", "edge_weights", "node_features", "node_labels", "labels"),
    *("train_mask", "val_mask", "test_mask", "train_masks", "val_masks", "test_masks"),
    *("class_names", "feature_names", "node_ids"),
    *(prefix + part for prefix in (*CSR_PREFIXES, "adj_") for part in CSR_PARTS),
}
"""The arrays that are read."""
_KEYS = "edges, node_features, node_labels (and train_masks, val_masks, test_masks)"


def read_npz(path: Path) -> Data:
    """Read a graph from one file."""
    return graph_from_arrays(read_members(path, ARRAYS), path)


def graph_from_arrays(arrays: dict[str, np.ndarray], path: Path) -> Data:
    """Return the graph with these arrays; messages name ``path``."""
    edge_index, weight = _edges(arrays, path)
    data = Data(edge_index=torch.from_numpy(edge_index), x=_features(arrays, path.name))
    if weight is not None:
        data.edge_weight = torch.from_numpy(weight)
    labels = arrays.get("node_labels", arrays.get("labels"))
    if labels is not None:
        data.y = labels  # of any kind: validation encodes them
    for part in ("train", "val", "test"):
        mask = arrays.get(f"{part}_masks", arrays.get(f"{part}_mask"))
        if mask is not None:
            mask = numeric(mask, f"{part}_masks", path.name)
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
    arrays = read_members(path, ARRAYS)
    x = compact_csr(_sparse(arrays, "attr_", path.name))
    x.data[x.data > 0] = 1
    edge_index, _ = remove_self_loops(torch.from_numpy(_edges(arrays, path)[0]))
    labels = numeric(arrays["labels"], "labels", path.name).astype(np.int64)
    edge_index = to_undirected(edge_index, num_nodes=x.shape[0])
    return Data(x=x, edge_index=edge_index, y=torch.from_numpy(labels))


def declared_bytes(path: Path) -> int:
    """Return the unpacked size of the arrays that :func:`read_npz` reads."""
    try:
        sizes = member_sizes(path)
    except Exception:  # a damaged file can fail in any way, and the reader reports it
        return 0
    return sum(size for key, size in sizes.items() if key in ARRAYS)


def _edges(arrays: dict[str, np.ndarray], path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the edges [2, E] and their weights."""
    name = path.name
    if "edges" in arrays:
        edges = numeric(arrays["edges"], "edges", name)
        if edges.ndim != 2 or 2 not in edges.shape:
            raise UserError(
                f"{name}: `edges` has shape {list(edges.shape)}; [edges, 2] is required."
            )
        edges = np.ascontiguousarray(edges.T if edges.shape[1] == 2 else edges)
        if "edge_weights" not in arrays:
            return edges, None
        return edges, numeric(arrays["edge_weights"], "edge_weights", name)
    if "adj_indptr" in arrays:
        adjacency = _sparse(arrays, "adj_", name).tocoo()
        return np.stack([adjacency.row, adjacency.col]).astype(np.int64), None
    raise UserError(
        f"{name}: there is no key 'edges' (found: {few(list(member_sizes(path))) or 'none'}); "
        f"use the keys {_KEYS}."
    )


def _features(arrays: dict[str, np.ndarray], name: str) -> Any:
    if "node_features" in arrays:
        return torch.from_numpy(numeric(arrays["node_features"], "node_features", name))
    for prefix in CSR_PREFIXES:
        if f"{prefix}indptr" in arrays:
            return _sparse(arrays, prefix, name)
    return None


def _sparse(arrays: dict[str, np.ndarray], prefix: str, name: str) -> Any:
    """Return the CSR matrix whose four parts have this prefix."""
    parts = []
    for part in CSR_PARTS:
        key = prefix + part
        if key not in arrays:
            raise UserError(f"{name}: the key {key!r} of a sparse matrix is missing; add it.")
        parts.append(numeric(arrays[key], key, name))
    return csr_from_parts(parts, f"{name}: {prefix or 'the sparse matrix'}")


def numeric(array: np.ndarray, key: str, name: str) -> np.ndarray:
    """Return numbers of a type that torch supports."""
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise UserError(f"{name}: `{key}` has type {array.dtype}; numbers are required.")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        # Numbers beyond int64 would become negative.
        fits = array.dtype.itemsize < 8 or array.size == 0 or array.max() < 2**63
        return array.astype(np.int64 if fits else np.float64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
