"""Graphs in one ``.npz`` file."""

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.raw_layouts import writer_of
from scipy import sparse

from nfgnn.data import REGISTRY, load_dataset
from nfgnn.data.readers.mapped_graph import open_npz
from nfgnn.errors import UserError


def test_npz_dense_and_sparse(tmp_path: Path) -> None:
    x = (np.random.default_rng(0).random((5, 3)) < 0.5).astype(np.float32)
    links = {"edges": np.array([[0, 1], [1, 2]]), "node_labels": np.array(["a", "b", "", "a", "b"])}
    matrix = sparse.csr_array(x)
    np.savez(tmp_path / "dense.npz", node_features=x, **links)
    for prefix in ("node_features_", "attr_", ""):
        parts = {
            prefix + part: getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")
        }
        np.savez(tmp_path / "sparse.npz", **links, **parts)
        dense, thin = load_dataset(tmp_path / "dense.npz"), load_dataset(tmp_path / "sparse.npz")
        assert torch.equal(dense.x.to_dense(), thin.x.to_dense())
        assert dense.y.tolist() == [0, 1, -1, 0, 1]


def test_python_objects_are_refused(tmp_path: Path) -> None:
    labels = np.array([{}, []], dtype=object)
    np.savez(tmp_path / "a.npz", edges=np.array([[0, 1]]), node_labels=labels)
    with pytest.raises(UserError, match=r"a\.npz: the key 'node_labels' contains Python objects"):
        load_dataset(tmp_path / "a.npz")


@pytest.mark.parametrize(("part", "value"), [("indices", 10**9), ("indices", -1), ("indptr", 7)])
@pytest.mark.parametrize("matrix", ["attr", "adj"])
@pytest.mark.usefixtures("empty_cache")
def test_sparse_matrices_out_of_bounds_are_refused(
    matrix: str, part: str, value: int, tmp_path: Path
) -> None:
    """PyTorch Geometric would write out of bounds with the features of this file."""
    entry = REGISTRY["photo"]
    folder = tmp_path / entry.folder
    folder.mkdir(parents=True)
    writer_of(entry)(entry, folder)
    arrays = dict(np.load(folder / entry.required[0]))
    arrays[f"{matrix}_{part}"][-1] = value
    np.savez(folder / entry.required[0], **arrays)
    with pytest.raises(UserError, match="do not describe a CSR matrix"):
        load_dataset("photo", tmp_path)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_unsigned_features_beyond_int64_stay_positive(layout: str, tmp_path: Path) -> None:
    x = np.array([[2**64 - 1], [1]], dtype=np.uint64)
    arrays = {"edges": np.array([[0, 1]]), "node_labels": np.array([0, 1])}
    matrix = sparse.csr_array(x)
    if layout == "dense":
        arrays["node_features"] = x
    else:
        for part in ("data", "indices", "indptr", "shape"):
            arrays[f"node_features_{part}"] = np.asarray(getattr(matrix, part))
    np.savez(tmp_path / "graph.npz", **arrays)
    assert load_dataset(tmp_path / "graph.npz").x.to_dense().tolist() == [[2.0**64], [1.0]]


def test_node_numbers_beyond_int64_are_refused(tmp_path: Path) -> None:
    edges = np.array([[0, 2**64 - 1]], dtype=np.uint64)
    np.savez(tmp_path / "graph.npz", edges=edges, node_labels=np.array([0, 1]))
    with pytest.raises(UserError, match=r"graph\.npz"):
        load_dataset(tmp_path / "graph.npz")


def test_features_that_are_no_matrix_are_refused_in_blocks_too(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    np.savez(path, node_features=np.float32(1), node_labels=np.arange(3), edges=np.zeros((0, 2)))
    with pytest.raises(UserError, match="save a matrix"):
        open_npz(path)
