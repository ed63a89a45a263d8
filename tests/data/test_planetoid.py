"""Planetoid's pickles give the graph of PyTorch Geometric, and never run code."""

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.raw_layouts import planetoid
from scipy import sparse
from torch_geometric.data import Data
from torch_geometric.io import read_planetoid_data

from nfgnn.cli import main
from nfgnn.data import check_graph, load_dataset
from nfgnn.data.registry import REGISTRY
from nfgnn.errors import UserError

CORA = REGISTRY["cora"]


def assert_equal_graphs(ours: Data, theirs: Data) -> None:
    """Compare the raw graphs and what validation makes of them."""
    assert torch.equal(torch.from_numpy(ours.x.toarray()), theirs.x)
    for key in ("edge_index", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(ours[key], theirs[key]), key
    one, other = check_graph(ours, name="g"), check_graph(theirs, name="g")
    assert one.notes == other.notes
    assert one.x.layout == other.x.layout
    if one.x.layout == torch.sparse_csr:
        assert torch.equal(one.x.crow_indices(), other.x.crow_indices())
        assert torch.equal(one.x.col_indices(), other.x.col_indices())
        assert torch.equal(one.x.values(), other.x.values())
    else:
        assert torch.equal(one.x, other.x)


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_real_files_give_the_graph_of_pytorch_geometric(name: str, data_root: Path) -> None:
    entry = REGISTRY[name]
    folder = data_root / entry.folder
    if not folder.is_dir():
        pytest.skip(f"the raw files of {name} are not available")
    ours = entry.read(folder)
    theirs = read_planetoid_data(str(folder), name)
    unlabelled = ours.y < 0
    assert int(unlabelled.sum()) == (15 if name == "citeseer" else 0)
    theirs.y[unlabelled] = -1  # PyTorch Geometric puts them in class 0
    assert_equal_graphs(ours, theirs)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Small valid files of Cora."""
    path = tmp_path / "root" / CORA.folder
    path.mkdir(parents=True)
    planetoid(CORA, path)
    return path


def rewrite(folder: Path, part: str, change: Callable[[Any], Any], protocol: int = 2) -> Path:
    file = folder / f"ind.cora.{part}"
    content = pickle.loads(file.read_bytes(), encoding="latin1")
    file.write_bytes(pickle.dumps(change(content), protocol=protocol))
    return file


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_pickle_protocol_gives_the_graph_of_pytorch_geometric(
    protocol: int, folder: Path
) -> None:
    for part in ("x", "tx", "allx", "y", "ty", "ally", "graph"):
        rewrite(folder, part, lambda content: content, protocol)
    assert_equal_graphs(CORA.read(folder), read_planetoid_data(str(folder), "cora"))


CHANGES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "dense features": ("allx", lambda x: x.toarray()),
    "float64 in Fortran order": ("tx", lambda x: np.asfortranarray(x.toarray(), dtype=float)),
    "big-endian labels": ("ty", lambda y: y.astype(">i4")),
    "duplicate entries and stored zeros": (
        "allx",
        lambda x: sparse.csr_matrix(
            (np.append(x.data, [2, 3, 0]), np.append(x.indices, [1, 1, 2]),
             np.append(x.indptr[:-1], x.indptr[-1] + 3)), x.shape
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_unusual_files_give_the_graph_of_pytorch_geometric(case: str, folder: Path) -> None:
    rewrite(folder, *CHANGES[case])
    assert_equal_graphs(CORA.read(folder), read_planetoid_data(str(folder), "cora"))


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("place", ["root", "environment", "cache"])
@pytest.mark.parametrize("part", ["x", "allx", "graph"])
def test_a_payload_is_refused_with_status_2_and_one_message(
    place: str,
    part: str,
    tmp_path: Path,
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = empty_cache / "raw" if place == "cache" else tmp_path / "root"
    folder = root / CORA.folder
    folder.mkdir(parents=True)
    planetoid(CORA, folder)
    executed = tmp_path / "executed"
    (folder / f"ind.cora.{part}").write_bytes(pickle.dumps(Payload(executed), protocol=2))
    if place == "environment":
        monkeypatch.setenv("NFGNN_DATA", str(root))
    options = ["--root", str(root)] if place == "root" else []
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(sys, "argv", ["nfgnn", "datasets", "cora", *options])
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    message = " ".join(err.split())
    assert stop.value.code == 2
    assert out == ""
    assert f"ind.cora.{part}" in message.replace(" ", "")
    assert "no code was run" in message
    assert "Traceback" not in message
    assert not executed.exists()
    assert sorted(tmp_path.rglob("*")) == before


def payload_in(container: Callable[[Payload], Any]) -> Callable[[Path], bytes]:
    return lambda target: pickle.dumps(container(Payload(target)), protocol=2)


def by_name(line: str) -> Callable[[Path], bytes]:
    """A hand-written pickle that calls ``line`` with the target."""
    return lambda target: f"c{line}\n(S'{target}'\ntR.".encode()


HOSTILE: dict[str, Callable[[Path], bytes]] = {
    "in the neighbours": payload_in(lambda payload: {0: [1], 1: payload}),
    "as a key": payload_in(lambda payload: {payload: [1]}),
    "in an array of objects": payload_in(lambda payload: np.array([payload, 1], dtype=object)),
    "a function of the system": by_name("posix\nmkdir"),
    "another function of NumPy": by_name("numpy\nsave"),
    "a private module of NumPy": by_name("numpy.testing._private.utils\nruncstring"),
    "eval": lambda target: (
        f'c__builtin__\neval\n(S\'__import__("os").mkdir("{target}")\'\ntR.'.encode()
    ),
    "getattr": lambda _: b"c__builtin__\ngetattr\n(c__builtin__\nlist\nS'__class__'\ntR.",
    "a dotted name": lambda _: b"\x80\x04\x8c\x05numpy\x8c\x0fndarray.tofile\x93.",
    "an instance by INST": lambda target: f"(S'{target}'\niposix\nmkdir\n.".encode(),
    "the extension registry": lambda _: b"\x80\x02\x82\x01.",
    "a persistent id": lambda _: b"P1\n.",
    "a class whose state is set": lambda _: b"\x80\x02cnumpy\nndarray\n}X\x01\x00\x00\x00aK\x01sb.",
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.usefixtures("empty_cache")
def test_nothing_else_is_ever_called(case: str, folder: Path, tmp_path: Path) -> None:
    (folder / "ind.cora.graph").write_bytes(HOSTILE[case](tmp_path / "executed"))
    with pytest.raises(UserError, match=r"ind\.cora\.graph: .*no code was run"):
        load_dataset("cora", tmp_path / "root")
    assert not (tmp_path / "executed").exists()


def with_state(**state: Any) -> Callable[[Any], Any]:
    def change(matrix: Any) -> Any:
        for name, value in state.items():
            setattr(matrix, name, value)
        return matrix

    return change


def first(array: np.ndarray, value: int) -> np.ndarray:
    changed = array.copy()
    changed[1] = value
    return changed


INVALID: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "column beyond the shape": ("allx", lambda m: with_state(indices=first(m.indices, 10**9))(m)),
    "negative column": ("allx", lambda m: with_state(indices=first(m.indices, -5))(m)),
    "indptr beyond the values": ("tx", lambda m: with_state(indptr=first(m.indptr, 10**9))(m)),
    "decreasing indptr": ("tx", lambda m: with_state(indptr=m.indptr[::-1].copy())(m)),
    "fewer values than indices": ("x", lambda m: m),
    "shape of more rows": ("allx", with_state(_shape=(10**9, 12))),
    "fractional indices": ("allx", lambda m: with_state(indices=m.indices + 0.5)(m)),
    "objects as labels": ("ally", lambda y: y.astype(object)),
    "text as labels": ("ty", lambda y: y.astype(str)),
    "labels of another size": ("ally", lambda y: y[:-1]),
    "no labels": ("ty", lambda y: y[:0]),
    "a matrix as graph": ("graph", lambda _: np.eye(3)),
    "a dictionary as features": ("tx", lambda _: {0: [1]}),
    "a node outside": ("graph", lambda g: {**g, 0: [10**9]}),
    "a negative node": ("graph", lambda g: {**g, 0: [-1]}),
    "neighbours that are no list": ("graph", lambda g: {**g, 0: 7}),
    "neighbours that are text": ("graph", lambda g: {**g, 0: ["a"]}),
    "a number beyond 64 bits": ("graph", lambda g: {**g, 0: [2**80]}),
    "too few nodes for validation": ("y", lambda y: np.tile(y, (20, 1))),
}


@pytest.mark.parametrize("case", INVALID)
@pytest.mark.usefixtures("empty_cache")
def test_invalid_content_is_refused_and_names_the_file(
    case: str, folder: Path, tmp_path: Path
) -> None:
    part, change = INVALID[case]
    if case == "fewer values than indices":
        part, change = "tx", lambda m: with_state(data=m.data[:-1])(m)
    rewrite(folder, part, change)
    with pytest.raises(UserError, match=r"ind\.cora\."):
        load_dataset("cora", tmp_path / "root")


@pytest.mark.parametrize("text", ["", "1 2", "a", "600\n" * 40, "99999999999999999999999\n" * 40])
@pytest.mark.usefixtures("empty_cache")
def test_an_invalid_test_index_is_refused(text: str, folder: Path, tmp_path: Path) -> None:
    (folder / "ind.cora.test.index").write_text(text)
    with pytest.raises(UserError, match=r"ind\.cora\.test\.index"):
        load_dataset("cora", tmp_path / "root")


@pytest.mark.parametrize("content", [b"", b"junk", b"\x80\x02]", b"\x80\x02K\x01.", bytes(64)])
@pytest.mark.usefixtures("empty_cache")
def test_a_damaged_file_is_refused(content: bytes, folder: Path, tmp_path: Path) -> None:
    (folder / "ind.cora.allx").write_bytes(content)
    with pytest.raises(UserError, match=r"ind\.cora\.allx"):
        load_dataset("cora", tmp_path / "root")
