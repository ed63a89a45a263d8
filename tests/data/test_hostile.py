"""Small files that would crash the interpreter, wait for ever or exhaust the memory."""

import contextlib
import os
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet
from scipy import sparse
from torch_geometric.data import Data, HeteroData

from nfgnn.data import load_dataset, loaded_bytes, memory, open_large
from nfgnn.errors import UserError
from nfgnn.npyfile import NpyFile

EDGES = torch.tensor([[0, 1], [1, 2]])
LABELS = torch.tensor([0, 1, 1])


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 64 MiB, so that the files of the tests stay small."""
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory, "available_memory", lambda: 2.0**26)


def graph(**more: Any) -> dict[str, Any]:
    return {"x": torch.eye(3), "edge_index": EDGES, "y": LABELS, **more}


def invalid(layout: str) -> torch.Tensor:
    """A sparse tensor [3, 2] with an index far out of bounds."""
    bad = torch.tensor([0, 1, 10**9])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # CSR tensors are in beta
        if layout == "csr":
            return torch.sparse_csr_tensor(
                torch.arange(4), bad, torch.ones(3), (3, 2), check_invariants=False
            )
        if layout == "csc":
            return torch.sparse_csc_tensor(
                torch.tensor([0, 1, 3]), bad, torch.ones(3), (3, 2), check_invariants=False
            )
        return torch.sparse_coo_tensor(
            torch.stack([torch.arange(3), bad]), torch.ones(3), (3, 2), check_invariants=False
        )


def in_hetero(tensor: torch.Tensor) -> HeteroData:
    data = HeteroData()
    data["paper"].x = tensor
    return data


PLACES: dict[str, Callable[[torch.Tensor], Any]] = {
    "features": lambda bad: graph(x=bad),
    "labels": lambda bad: graph(y=bad),
    "mask": lambda bad: graph(train_mask=bad),
    "another key": lambda bad: graph(other=bad),
    "nested": lambda bad: graph(other={"a": [bad]}),
    "Data": lambda bad: Data(**graph(x=bad)),
    "HeteroData": in_hetero,
    "dictionary of HeteroData": lambda bad: in_hetero(bad).to_dict(),
}


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("place", PLACES)
def test_sparse_tensors_out_of_bounds(place: str, layout: str, tmp_path: Path) -> None:
    torch.save(PLACES[place](invalid(layout)), tmp_path / "graph.pt")
    with pytest.raises(UserError, match=r"graph\.pt: is not a file of plain tensors"):
        load_dataset(tmp_path / "graph.pt")


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_an_object_with_sparse_features_out_of_bounds(layout: str) -> None:
    with pytest.raises(UserError, match="sparse"):
        load_dataset(Data(**graph(x=invalid(layout))))


def test_a_matrix_of_scipy_out_of_bounds() -> None:
    x = sparse.csr_array(np.eye(3))
    x.indices[-1] = 10**9
    with pytest.raises(UserError, match="sparse features are invalid"):
        load_dataset(Data(edge_index=EDGES, y=LABELS, x=x))


def empty_sparse(*shape: int) -> torch.Tensor:
    places = torch.zeros(2, 0, dtype=torch.int64)
    return torch.sparse_coo_tensor(places, torch.ones(0), shape, check_invariants=True)


DECLARED: dict[str, tuple[dict[str, Any], str]] = {
    "number of nodes": (graph(num_nodes=2 * 10**9), "features for 3 nodes"),
    "number of nodes without features": (
        {"edge_index": EDGES, "y": LABELS, "num_nodes": 2 * 10**9},
        "3 labels for 2,000,000,000 nodes",
    ),
    "number of nodes without labels": (
        {"edge_index": EDGES, "num_nodes": 2 * 10**9},
        "GiB of memory",
    ),
    "negative number of nodes": ({"edge_index": EDGES, "num_nodes": -3}, "no nodes"),
    "features of stride 0": (graph(x=torch.ones(3, 1).expand(3, 10**10)), "GiB of memory"),
    "labels of stride 0": (
        {"edge_index": EDGES, "y": torch.zeros(1).expand(10**9)},
        "GiB of memory",
    ),
    "edges of stride 0": (graph(edge_index=torch.ones(2, 1).long().expand(2, 10**9)), "GiB of"),
    "sparse mask": (graph(train_mask=empty_sparse(3, 10**12)), "GiB of memory"),
}


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("case", DECLARED)
def test_sizes_that_tensors_declare(case: str, tmp_path: Path) -> None:
    content, message = DECLARED[case]
    torch.save(content, tmp_path / "graph.pt")
    with pytest.raises(UserError, match=rf"graph\.pt.*{message}"):
        load_dataset(tmp_path / "graph.pt", need_labels=False)


def test_a_small_tensor_of_stride_0_is_read(tmp_path: Path) -> None:
    torch.save(graph(x=torch.ones(1, 1).expand(3, 4)), tmp_path / "graph.pt")
    assert torch.equal(load_dataset(tmp_path / "graph.pt").x, torch.ones(3, 4))


@pytest.mark.usefixtures("little_memory")
def test_a_compressed_tensor_file(tmp_path: Path) -> None:
    torch.save(graph(), tmp_path / "plain.pt")
    with (
        zipfile.ZipFile(tmp_path / "plain.pt") as plain,
        zipfile.ZipFile(tmp_path / "graph.pt", "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in plain.namelist():
            archive.writestr(name, plain.read(name))
        with archive.open("plain/bomb", "w", force_zip64=True) as member:
            for _ in range(2):
                member.write(bytes(2**26))
    with pytest.raises(UserError, match=r"graph\.pt: needs about 0\.1 GiB"):
        load_dataset(tmp_path / "graph.pt")


def write_npz(path: Path, declared: tuple[int, ...], content: int, key: str) -> None:
    """Write a good graph with one key of ``content`` zeros that declares another shape."""
    arrays = {"node_features": np.eye(3), "edges": np.array([[0, 1], [1, 2]])}
    arrays["node_labels"] = np.array([0, 1, 1])
    arrays.pop(key, None)
    np.savez(path, **arrays)
    fields = {"descr": "|i1", "fortran_order": False, "shape": declared}
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open(f"{key}.npy", "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array_header_1_0(member, fields)
        for _ in range(content // 2**24):
            member.write(bytes(2**24))


@pytest.mark.usefixtures("little_memory")
def test_a_compressed_array_that_exceeds_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    write_npz(path, (2**22, 2**4), 2**26, "node_features")
    assert path.stat().st_size < 2**18
    with pytest.raises(UserError, match=r"graph\.npz.* needs about"):
        load_dataset(path)
    assert loaded_bytes(path) > 2**26


@pytest.mark.usefixtures("little_memory")
def test_an_unused_array_is_not_read(tmp_path: Path) -> None:
    write_npz(tmp_path / "graph.npz", (2**27,), 2**27, "unused")
    assert load_dataset(tmp_path / "graph.npz").num_nodes == 3


@pytest.mark.parametrize("shape", [(2**40, 2**10), (3, 2**50), (-3, -1)])
def test_a_header_that_exceeds_the_array(shape: tuple[int, ...], tmp_path: Path) -> None:
    write_npz(tmp_path / "graph.npz", shape, 0, "node_features")
    with pytest.raises(UserError, match=r"graph\.npz"):
        load_dataset(tmp_path / "graph.npz")
    with pytest.raises(UserError, match=r"graph\.npz"):
        open_large(tmp_path / "graph.npz")


def test_mutated_archives_are_opened_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "graph.npz"
    labels = np.array([0, 1, 1])
    rng = np.random.default_rng(0)
    for save in (np.savez, np.savez_compressed):
        save(path, edges=EDGES.numpy().T, node_features=np.eye(3), node_labels=labels)
        valid = path.read_bytes()
        for i in range(150):
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / save.__name__ / str(i)))
            changed = bytearray(valid)
            for place in rng.integers(0, len(changed), rng.integers(1, 6)):
                changed[place] = rng.integers(0, 256)
            path.write_bytes(changed)
            assert loaded_bytes(path) >= 0
            for read in (load_dataset, open_large):
                with contextlib.suppress(UserError):
                    read(path)


@pytest.mark.usefixtures("little_memory")
def test_a_parquet_file_of_equal_values(tmp_path: Path) -> None:
    values = pa.array(np.zeros(10**6, dtype=np.int8))
    with parquet.ParquetWriter(tmp_path / "nodes.parquet", pa.schema({"id": pa.int8()})) as writer:
        for _ in range(20):
            writer.write_table(pa.table({"id": values}))
    parquet.write_table(pa.table({"source": [0], "target": [1]}), tmp_path / "edges.parquet")
    assert (tmp_path / "nodes.parquet").stat().st_size < 2**20
    with pytest.raises(UserError, match=r"nodes\.parquet: needs about"):
        load_dataset(tmp_path)


@pytest.mark.parametrize("name", ["graph.npz", "graph.pt", "graph.safetensors"])
def test_a_pipe_in_place_of_a_file(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(UserError, match=rf"{name}: is a pipe, socket or device"):
        load_dataset(tmp_path / name)
    with pytest.raises(UserError, match=rf"{name}: is missing, or not a file"):
        NpyFile.open(tmp_path / name)


@pytest.mark.parametrize("name", ["nodes.csv", "edges.parquet"])
def test_a_pipe_in_place_of_a_table(name: str, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label\n0,a\n1,b\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    for file in tmp_path.glob(f"{Path(name).stem}.*"):
        file.unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(UserError, match=f"there is no {Path(name).stem}"):
        load_dataset(tmp_path)


def test_a_device_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "graph.pt").symlink_to("/dev/zero")
    with pytest.raises(UserError, match=r"graph\.pt: is a pipe, socket or device"):
        load_dataset(tmp_path / "graph.pt")


@pytest.mark.parametrize("kind", ["nested", "meta"])
def test_tensors_without_values(kind: str) -> None:
    x = torch.empty(3, 2, device="meta")
    if kind == "nested":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # nested tensors are a prototype
            x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(UserError, match=f"`x` is a {kind} tensor"):
        load_dataset(Data(edge_index=EDGES, y=LABELS, x=x))
