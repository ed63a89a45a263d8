"""A graph that is read in blocks gives the same store as in memory, up to rounding."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from helpers.raw_layouts import ogb_binary
from helpers.store_graphs import files_of, planned, small_graph, terms_in_memory, write_tables
from pyarrow import csv, parquet
from safetensors.torch import save_file
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import REGISTRY, export_graph, load_dataset, loaded_bytes, open_large
from nfgnn.errors import UserError
from nfgnn.store import MemorySource, Settings, precompute


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("how", ["row", "auto"])
def test_tables_in_blocks(suffix: str, how: str, tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "g", suffix)
    data = load_dataset(folder)
    large = open_large(folder)
    assert large is not None
    settings = Settings(K=3, features=how)
    chosen = planned(
        MemorySource(data), tmp_path, settings, cut="streamed", width=2, stream_entries=50
    )
    store = precompute(large, tmp_path / "s", settings, chosen=chosen)
    assert torch.equal(store.rows(slice(None)), terms_in_memory(data, store))
    assert store.manifest.class_names == data.class_names
    assert torch.equal(store.y, data.y[store.nodes])
    assert torch.equal(store.labels().val_mask, data.val_mask[store.nodes])
    loaded = precompute(MemorySource(data), tmp_path / "m", settings, chosen=chosen)
    torch.testing.assert_close(
        store.rows(slice(None)), loaded.rows(slice(None)), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("serve", [False, True])
@pytest.mark.parametrize("layout", ["parquet", "csv", "lists", "npz", "pt"])
def test_names_of_features_in_blocks_are_those_in_memory(
    layout: str, serve: bool, tmp_path: Path
) -> None:
    suffix = "csv" if layout == "csv" else "parquet"
    path = write_tables(tmp_path / "g", suffix)
    expected = [f"x{i}" for i in range(7)]
    if layout == "lists":
        nodes = parquet.read_table(path / "nodes.parquet")
        nodes = nodes.append_column("v", pa.array([[float(i), 1.0] for i in range(60)]))
        parquet.write_table(nodes, path / "nodes.parquet")
        expected += ["v_0", "v_1"]
    elif layout == "npz":
        path = export_graph(load_dataset(path), tmp_path / "g.npz", "npz")
    elif layout == "pt":
        content = load_dataset(path).to_dict()
        kept = ("x", "y", "edge_index", "feature_names")
        path = tmp_path / "g.pt"
        torch.save({key: content[key] for key in kept}, path)
    data = load_dataset(path)
    large = open_large(path)
    assert large is not None
    settings = Settings(K=1, features="raw", rows="all", serve=serve)
    for source, name in ((large, "blocks"), (MemorySource(data), "memory")):
        chosen = planned(MemorySource(data), tmp_path, settings, width=3)
        store = precompute(source, tmp_path / name, settings, chosen=chosen)
        assert store.manifest.feature_names == expected
        assert store.labels().feature_names == expected
        assert store.existing_nodes.feature_names == expected
        assert store.manifest.format == (2 if serve else 1)
        assert store.manifest.num_features == len(expected)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("lay_out", [np.ascontiguousarray, np.asfortranarray, np.transpose])
def test_npz_files_in_blocks(
    compressed: bool, lay_out: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data = small_graph()
    save = np.savez_compressed if compressed else np.savez
    edges = lay_out(data.edge_index.T.numpy())
    save(tmp_path / "g.npz", edges=edges, node_features=data.x.numpy(), node_labels=data.y.numpy())
    large = open_large(tmp_path / "g.npz")
    assert large is not None
    settings = Settings(K=3, features="raw", self_loops=True)
    store = precompute(
        large,
        tmp_path / "s",
        settings,
        chosen=planned(MemorySource(data), tmp_path, settings, width=3),
    )
    assert torch.equal(store.rows(slice(None)), terms_in_memory(data, store))


@pytest.mark.parametrize("ending", ["pt", "safetensors"])
def test_files_of_tensors_in_blocks(ending: str, tmp_path: Path) -> None:
    data = small_graph()
    content = {key: value for key, value in data.to_dict().items() if isinstance(value, Tensor)}
    content["test_mask"] = content["test_mask"].clone()
    path = tmp_path / f"g.{ending}"
    if ending == "pt":
        torch.save(content, path)
    else:
        save_file(content, path)
    large = open_large(path)
    assert large is not None
    assert loaded_bytes(path) > 4 * 60 * 7
    torch.testing.assert_close(np.concatenate(list(large.features(7))), data.x.numpy())
    edges = np.concatenate([np.stack(ends) for ends in large.edges(11)], axis=1)
    assert np.array_equal(edges, data.edge_index)
    settings = Settings(K=3, features="raw")
    chosen = planned(MemorySource(data), tmp_path, settings, width=3)
    store = precompute(large, tmp_path / "s", settings, chosen=chosen)
    assert torch.equal(store.rows(slice(None)), terms_in_memory(data, store))
    assert torch.equal(store.labels().train_mask, data.train_mask[store.nodes])


@pytest.mark.parametrize("change", ["sparse", "no labels"])
def test_files_of_tensors_that_are_read_as_a_whole(change: str, tmp_path: Path) -> None:
    data = small_graph()
    content = {key: value for key, value in data.to_dict().items() if isinstance(value, Tensor)}
    if change == "sparse":
        content["x"] = content["x"].to_sparse_coo()
    if change == "no labels":
        del content["y"]
    torch.save(content, tmp_path / "g.pt")
    assert open_large(tmp_path / "g.pt") is None


def _write(data: Data, folder: Path, layout: str, weight: np.ndarray, edges: np.ndarray) -> Path:
    """Write a graph with the given list of weighted edges."""
    path = folder / f"g.{layout}"
    labels = data.y.numpy()
    if layout == "pt":
        content = {"x": data.x, "y": data.y, "edge_index": torch.from_numpy(edges)}
        torch.save({**content, "edge_weight": torch.from_numpy(weight)}, path)
        return path
    if layout == "parquet":
        path.mkdir()
        nodes = {"id": np.arange(len(labels)), "label": labels}
        nodes.update({f"x{i}": column for i, column in enumerate(data.x.T.numpy())})
        parquet.write_table(pa.table(nodes), path / "nodes.parquet")
        table = pa.table({"source": edges[0], "target": edges[1], "weight": weight})
        parquet.write_table(table, path / "edges.parquet")
        return path
    arrays = {"edges": edges.T, "edge_weights": weight, "node_labels": labels}
    if data.x.layout == torch.strided:
        arrays["node_features"] = data.x.numpy()
    else:
        arrays["node_features_data"] = data.x.values().numpy()
        arrays["node_features_indices"] = data.x.col_indices().numpy()
        arrays["node_features_indptr"] = data.x.crow_indices().numpy()
        arrays["node_features_shape"] = np.array(data.x.shape)
    if layout == "npz":
        np.savez(path, **arrays)
        return path
    path.mkdir()
    for name, array in arrays.items():
        np.save(path / f"{name}.npy", np.ascontiguousarray(array))
    return path


def _compare_with_memory(path: Path, folder: Path, settings: Settings, width: int = 4) -> None:
    """Both ways of reading give the same store, byte for byte, its manifest aside."""
    data = load_dataset(path)
    large = open_large(path)
    assert large is not None
    chosen = planned(
        MemorySource(data), folder, settings, cut="streamed", width=width, stream_entries=50
    )
    precompute(large, folder / "blocks", settings, chosen=chosen)
    precompute(MemorySource(data), folder / "memory", settings, chosen=chosen)
    found, expected = (files_of(folder / name) for name in ("blocks", "memory"))
    assert found.keys() == expected.keys()
    for name in found.keys() - {"manifest.json"}:
        assert found[name] == expected[name], name


@pytest.mark.parametrize("layout", ["parquet", "npz", "folder", "pt"])
@pytest.mark.parametrize("self_loops", [False, True])
def test_weighted_edges_in_blocks(layout: str, self_loops: bool, tmp_path: Path) -> None:
    """Weights of edges that are listed again and in both directions are those in memory."""
    data = small_graph(weighted=True)
    rng = np.random.default_rng(1)
    chosen = rng.integers(0, data.edge_index.shape[1], 700)
    edges = data.edge_index.numpy()[:, chosen]
    weight = rng.random(700)
    weight[:9] = [0.0, 1e-60, 1, 1, 1, 1, 1, 1, 1]
    path = _write(data, tmp_path, layout, weight, edges)
    settings = Settings(K=3, features="raw", rows="all", serve=True, self_loops=self_loops)
    _compare_with_memory(path, tmp_path, settings)
    assert (tmp_path / "blocks" / "weight.npy").is_file()


@pytest.mark.parametrize("layout", ["npz", "folder", "pt"])
@pytest.mark.parametrize("how", ["auto", "raw"])
def test_sparse_features_in_blocks(layout: str, how: str, tmp_path: Path) -> None:
    """Rows of a sparse matrix are scaled with the rounding of a sparse matrix in memory."""
    data = small_graph()
    rng = np.random.default_rng(2)
    x = np.where(rng.random((60, 4400)) < 0.02, rng.random((60, 4400)), 0).astype(np.float32)
    data.x = torch.from_numpy(x).to_sparse_csr()
    edges = data.edge_index.numpy()
    path = _write(data, tmp_path, layout, np.ones(edges.shape[1]), edges)
    assert load_dataset(path).x.layout == torch.sparse_csr
    settings = Settings(K=1, features=how, rows="all", serve=True)
    _compare_with_memory(path, tmp_path, settings, width=3000)
    assert not (tmp_path / "blocks" / "weight.npy").is_file()


def test_an_adjacency_matrix_in_blocks(tmp_path: Path) -> None:
    """The parts of gnn-benchmark: CSR matrices for both features and edges."""
    data = small_graph()
    matrices = {
        "adj": sparse.csr_array(
            sparse.coo_array((np.ones(data.num_edges), data.edge_index.numpy()))
        ),
        "attr": sparse.csr_array(data.x.numpy()),
    }
    arrays = {"labels": data.y.numpy()}
    for name, matrix in matrices.items():
        for part in ("data", "indices", "indptr"):
            arrays[f"{name}_{part}"] = getattr(matrix, part)
        arrays[f"{name}_shape"] = np.array(matrix.shape)
    np.savez(tmp_path / "g.npz", **arrays)
    settings = Settings(K=2, features="raw", rows="all")
    _compare_with_memory(tmp_path / "g.npz", tmp_path, settings)


@pytest.mark.parametrize("damage", ["indices", "indptr", "shape", "data"])
@pytest.mark.parametrize("layout", ["npz", "pt"])
def test_damaged_sparse_features_are_rejected(damage: str, layout: str, tmp_path: Path) -> None:
    data = small_graph()
    data.x = torch.where(data.x > 0, data.x, 0.0).to_sparse_csr()
    indptr, indices, values = data.x.crow_indices(), data.x.col_indices(), data.x.values()
    shape = [60, 7]
    if damage == "indices":
        indices[5] = 7
    if damage == "indptr":
        indptr[3] = 10**6
    if damage == "shape":
        shape = [60, 2]
    if damage == "data":
        values[4] = torch.nan
    data.x = torch.sparse_csr_tensor(indptr, indices, values, shape, check_invariants=False)
    edges = data.edge_index.numpy()
    path = _write(data, tmp_path, layout, np.ones(edges.shape[1]), edges)
    large = open_large(path)
    assert large is not None
    with pytest.raises(UserError, match=f"g.{layout}"):
        list(large.features(9))


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("ids", ["numbers", "text"])
def test_ids_that_are_not_row_numbers(suffix: str, ids: str, tmp_path: Path) -> None:
    """Tables in blocks give the graph and the ids that they give in memory."""
    folder = write_tables(tmp_path / "g", "parquet")
    numbers = np.random.default_rng(0).permutation(1000)[:60]
    names = numbers if ids == "numbers" else np.array([f"u{number}" for number in numbers])
    write = parquet.write_table if suffix == "parquet" else csv.write_csv
    for stem, columns in (("nodes", ["id"]), ("edges", ["source", "target"])):
        file = folder / f"{stem}.parquet"
        table = parquet.read_table(file)
        file.unlink()
        for name in columns:
            renamed = pa.array(names[table[name].to_numpy()])
            table = table.set_column(table.column_names.index(name), name, renamed)
        write(table, folder / f"{stem}.{suffix}")
    data = load_dataset(folder)
    large = open_large(folder)
    assert large is not None
    settings = Settings(K=2, features="raw")
    chosen = planned(MemorySource(data), tmp_path, settings, width=3)
    store = precompute(large, tmp_path / "s", settings, chosen=chosen)
    loaded = precompute(MemorySource(data), tmp_path / "m", settings, chosen=chosen)
    assert torch.equal(store.rows(slice(None)), loaded.rows(slice(None)))
    for name in ("id_text", "id_start", "id_order"):
        file = f"{name}.npy"
        assert (tmp_path / "s" / file).read_bytes() == (tmp_path / "m" / file).read_bytes()


def test_raw_files_of_papers100m(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    entry = REGISTRY["ogbn-papers100m"]
    ogb_binary(entry, tmp_path / "root" / entry.folder)
    data, large = (
        load_dataset(entry.name, tmp_path / "root"),
        open_large(entry.name, tmp_path / "root"),
    )
    assert large is not None
    assert loaded_bytes(entry.name, tmp_path / "root") > 10**11
    settings = Settings(K=3, features="raw")
    store = precompute(
        large,
        tmp_path / "s",
        settings,
        chosen=planned(MemorySource(data), tmp_path, settings, width=3),
    )
    assert torch.equal(store.rows(slice(None)), terms_in_memory(data, store))
    assert torch.equal(store.labels().train_mask, data.train_mask[store.nodes])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": np.full(60, 7)}, "column 'id': the id 7 is already in row 1"),
        ({"split": np.full(60, "maybe")}, "'maybe' is not a valid split"),
    ],
)
def test_invalid_nodes_are_rejected(
    change: dict[str, np.ndarray], message: str, tmp_path: Path
) -> None:
    folder = write_tables(tmp_path / "g", "parquet")
    table = parquet.read_table(folder / "nodes.parquet")
    for name, column in change.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(column))
    parquet.write_table(table, folder / "nodes.parquet")
    with pytest.raises(UserError, match=message):
        open_large(folder)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.array([0, 60]), r"contains node 60, but the 60 nodes are numbered 0 … 59"),
        (np.array(["a", "b"]), "whole row numbers"),
    ],
)
def test_invalid_edges_are_rejected(source: np.ndarray, message: str, tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "g", "parquet")
    parquet.write_table(pa.table({"source": source, "target": [1, 2]}), folder / "edges.parquet")
    large = open_large(folder)
    assert large is not None
    with pytest.raises(UserError, match=message):
        large.write_pattern(tmp_path / "w", 10**6, False, lambda what, done, total: None)


def test_a_large_graph_that_is_changed_has_another_fingerprint(tmp_path: Path) -> None:
    """Also if the file has the same size and gets its old modification time back."""
    folder = write_tables(tmp_path / "g", "csv")
    before = open_large(folder)
    again = open_large(folder)
    assert before is not None
    assert again is not None
    assert before.fingerprint == again.fingerprint
    edges = folder / "edges.csv"
    content = edges.read_bytes()
    stat = edges.stat()
    first, second = content.rstrip(b"\n").rsplit(b"\n", 1)
    swapped = b"\n".join([first, b",".join(second.split(b",")[::-1])]) + b"\n"
    assert swapped != content
    edges.write_bytes(swapped)
    os.utime(edges, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert edges.stat().st_size == stat.st_size
    after = open_large(folder)
    assert after is not None
    assert after.fingerprint != before.fingerprint
