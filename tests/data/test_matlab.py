"""The ``.mat`` files of the LINKX study give the graph that PyTorch Geometric reads."""

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
