"""The ``.mat`` files of the LINKX study give the graph that PyTorch Geometric reads."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.raw_layouts import writer_of
from scipy import io
from torch_geometric.datasets import LINKXDataset

from nfgnn.data import REGISTRY, check_graph, load_dataset
from nfgnn.errors import UserError


@pytest.mark.parametrize("name", ["reed98", "genius"])
def test_equals_pytorch_geometric(name: str, tmp_path: Path) -> None:
    entry = REGISTRY[name]
    folder = tmp_path / entry.folder
    folder.mkdir(parents=True)
    writer_of(entry)(entry, folder)
    ours = check_graph(entry.read(folder))
    theirs = check_graph(LINKXDataset(str(tmp_path / "LINKXDataset"), name)[0])
    assert ours.notes == theirs.notes
    for key in ("x", "edge_index", "y"):
        assert torch.equal(ours[key], theirs[key]), key


@pytest.mark.usefixtures("empty_cache")
def test_an_adjacency_matrix_out_of_bounds_is_refused(tmp_path: Path) -> None:
    entry = REGISTRY["reed98"]
    folder = tmp_path / entry.folder
    folder.mkdir(parents=True)
    writer_of(entry)(entry, folder)
    content = io.loadmat(folder / "data.mat")
    content["A"] = content["A"].tocsc()
    content["A"].indices[-1] = 10**6
    io.savemat(folder / "data.mat", {key: content[key] for key in ("A", "local_info")})
    with pytest.raises(UserError, match="do not describe a CSR matrix"):
        load_dataset("reed98", tmp_path)


def test_unknown_gender_is_unlabelled(tmp_path: Path) -> None:
    entry = REGISTRY["reed98"]
    writer_of(entry)(entry, tmp_path)
    data = entry.read(tmp_path)
    info = io.loadmat(tmp_path / "data.mat")["local_info"]
    assert np.array_equal(data.y.numpy() == -1, info[:, 1] == 0)


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for place in rng.integers(0, len(changed), rng.integers(1, 6)):
        changed[place] = rng.integers(0, 256)
    if rng.random() < 0.2:
        changed = changed[: rng.integers(0, len(changed))]
    return bytes(changed)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", ["reed98", "genius"])
@pytest.mark.usefixtures("empty_cache")
def test_mutated_files_are_read_or_refused(name: str, compressed: bool, tmp_path: Path) -> None:
    """``scipy.io.loadmat`` ends with a segmentation fault on some of them."""
    entry = REGISTRY[name]
    folder = tmp_path / entry.folder
    folder.mkdir(parents=True)
    writer_of(entry)(entry, folder)
    file = folder / entry.required[0]
    content = {key: value for key, value in io.loadmat(file).items() if key[0] != "_"}
    io.savemat(file, content, do_compression=compressed)
    valid = file.read_bytes()
    assert load_dataset(name, tmp_path).num_nodes == 30
    rng = np.random.default_rng(0)
    for _ in range(200):
        file.write_bytes(mutated(valid, rng))
        with contextlib.suppress(UserError):
            assert load_dataset(name, tmp_path).num_nodes > 0


@pytest.mark.parametrize("kind", ["missing", "text", "cell", "old format"])
@pytest.mark.usefixtures("empty_cache")
def test_files_without_the_arrays_are_refused(kind: str, tmp_path: Path) -> None:
    entry = REGISTRY["genius"]
    folder = tmp_path / entry.folder
    folder.mkdir(parents=True)
    writer_of(entry)(entry, folder)
    file = folder / entry.required[0]
    content = {key: value for key, value in io.loadmat(file).items() if key[0] != "_"}
    content.pop("label")
    if kind == "text":
        content["label"] = "text"
    if kind == "cell":
        content["label"] = np.array([[1], "a"], dtype=object)
    io.savemat(file, content, format="4" if kind == "old format" else "5")
    with pytest.raises(UserError, match=r"data\.mat"):
        load_dataset("genius", tmp_path)
