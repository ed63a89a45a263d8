"""A single ``.npz`` file, never unpickled.

Two families of keys are known: those of the heterophilous-graphs study (``edges`` [E, 2], ``node_features``,
``node_labels``, optionally ``train_masks``, ``val_masks``, ``test_masks`` [splits, n]) and sparse matrices
stored by their CSR parts: ``node_features_data``, ``…_indices``, ``…_indptr``, ``…_shape`` (also with the
prefixes ``attr_`` for features and ``adj_`` for links, as in gnn-benchmark, or none, as SciPy's ``save_npz``
writes them).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from nfgnn.data.entry import Entry
from nfgnn.errors import UserError

_PARTS = ("data", "indices", "indptr", "shape")


def read_npz_entry(entry: Entry, folder: Path) -> Data:
    """Read a registered dataset that is one ``.npz`` file."""
    return read_npz(folder / entry.required[0])


def read_gnn_benchmark(entry: Entry, folder: Path) -> Data:
    """Read the Amazon and Coauthor graphs: positive features become 1, edges undirected without self-loops."""
    path = folder / entry.required[0]
    arrays = _arrays(path)
    x = compact_csr(_sparse(arrays, "attr_", path.name))
    x.data[x.data > 0] = 1
    edges, _ = remove_self_loops(torch.from_numpy(_links(arrays, path.name)[0]))
    labels = _as_numbers(arrays["labels"], "labels", path.name).astype(np.int64)
    edge_index = to_undirected(edges, num_nodes=x.shape[0])
    return Data(x=x, edge_index=edge_index, y=torch.from_numpy(labels))


def read_npz(path: Path) -> Data:
    """Read a graph from one file."""
    arrays = _arrays(path)
    edge_index, weight = _links(arrays, path.name)
    data = Data(edge_index=torch.from_numpy(edge_index), x=_features(arrays, path.name))
    if weight is not None:
        data.edge_weight = torch.from_numpy(weight)
    labels = arrays.get("node_labels", arrays.get("labels"))
    if labels is not None:
        data.y = labels  # the gate numbers them, whatever they are
    for part in ("train", "val", "test"):
        mask = arrays.get(f"{part}_masks", arrays.get(f"{part}_mask"))
        if mask is not None:
            data[f"{part}_mask"] = torch.from_numpy(
                np.ascontiguousarray(_as_numbers(mask, f"{part}_masks", path.name).T)
            )
    for key in ("class_names", "feature_names"):
        if key in arrays:
            data[key] = arrays[key].astype(str).tolist()
    if "node_ids" in arrays:
        data.node_ids = arrays["node_ids"]
    return data


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
        return {key: _array(file, key, path.name) for key in file.files}


def _array(file: Any, key: str, name: str) -> np.ndarray:
    try:
        return np.asarray(file[key])
    except ValueError as error:
        if "pickle" in str(error).lower():
            raise UserError(
                f"{name}: the key {key!r} holds Python objects, which are never loaded; save numbers or text."
            ) from None
        raise


def _links(arrays: dict[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray | None]:
    if "edges" in arrays:
        edges = arrays["edges"]
        if edges.ndim != 2 or 2 not in edges.shape:
            raise UserError(f"{name}: `edges` has shape {list(edges.shape)}; [links, 2] is needed.")
        _as_numbers(edges, "edges", name)
        weight = arrays.get("edge_weights")
        weight = None if weight is None else _as_numbers(weight, "edge_weights", name)
        return np.ascontiguousarray(edges.T if edges.shape[1] == 2 else edges), weight
    if "adj_indptr" in arrays:
        adjacency = _sparse(arrays, "adj_", name).tocoo()
        return np.stack([adjacency.row, adjacency.col]).astype(np.int64), None
    known = "edges, node_features, node_labels (and train_masks, val_masks, test_masks)"
    raise UserError(
        f"{name}: there is no key 'edges' (found: {', '.join(arrays) or 'none'}); the keys are {known}."
    )


def _features(arrays: dict[str, np.ndarray], name: str) -> Any:
    if "node_features" in arrays:
        return torch.from_numpy(_as_numbers(arrays["node_features"], "node_features", name))
    for prefix in ("node_features_", "attr_", ""):
        if f"{prefix}indptr" in arrays:
            return _sparse(arrays, prefix, name)
    return None


def _sparse(arrays: dict[str, np.ndarray], prefix: str, name: str) -> Any:
    """Return the CSR matrix whose four parts have this prefix."""
    missing = [prefix + part for part in _PARTS if prefix + part not in arrays]
    if missing:
        raise UserError(f"{name}: the key {missing[0]!r} of a sparse matrix is missing.")
    parts = [_as_numbers(arrays[prefix + part], prefix + part, name) for part in _PARTS]
    return csr_from_parts(parts, f"{name}: {prefix or 'the sparse matrix'}")


def csr_from_parts(parts: Sequence[np.ndarray], where: str) -> Any:
    """Build a CSR matrix from its data, indices, indptr and shape.

    The parts are checked first: with invalid ones SciPy would read and write out of bounds.
    """
    values, indices, indptr, shape = parts
    flat = all(part.ndim == 1 for part in parts)
    whole = all(part.dtype.kind in "iu" for part in (indices, indptr, shape))
    if not flat or not whole or len(shape) != 2 or len(indptr) == 0:
        raise UserError(
            f"{where}: data, indices, indptr and shape of a CSR matrix must be one-dimensional, the last three of "
            "whole numbers."
        )
    rows, columns = shape.tolist()
    valid = (
        len(indptr) == rows + 1
        and len(values) == len(indices)
        and indptr[0] == 0
        and indptr[-1] == len(indices)
        and bool((indptr[1:] >= indptr[:-1]).all())
        and (len(indices) == 0 or (indices.min() >= 0 and indices.max() < columns))
    )
    if not valid:
        raise UserError(f"{where}: data, indices, indptr and shape do not describe a CSR matrix.")
    return sparse.csr_array((values, indices, indptr), shape=(rows, columns))


def compact_csr(matrix: Any) -> Any:
    """Return a float32 CSR matrix without duplicate entries and without stored zeros."""
    matrix = sparse.csr_array(matrix)
    matrix.sum_duplicates()
    matrix = matrix.astype(np.float32)
    matrix.eliminate_zeros()
    return matrix


def _as_numbers(array: np.ndarray, key: str, name: str) -> np.ndarray:
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise UserError(f"{name}: `{key}` is of type {array.dtype}; numbers are needed.")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:  # torch has no such types
        return array.astype(np.int64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
