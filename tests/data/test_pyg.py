"""Data sets that classes of PyTorch Geometric read never run code of a file."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.raw_layouts import writer_of

from nfgnn.data import REGISTRY, load_dataset
from nfgnn.errors import UserError


class Payload:
    """Creates a folder when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("name", ["texas", "actor", "chameleon", "minesweeper"])
@pytest.mark.usefixtures("empty_cache")
def test_pickles_in_raw_files_are_refused(name: str, tmp_path: Path) -> None:
    entry = REGISTRY[name]
    folder = tmp_path / entry.folder
    folder.mkdir(parents=True)
    writer_of(entry)(entry, folder)
    file = folder / entry.required[-1]
    arrays = dict(np.load(file))
    first = next(iter(arrays))
    arrays[first] = np.array([Payload(tmp_path / "executed")], dtype=object)
    np.savez(file, **arrays)
    with pytest.raises(UserError, match=f"{file.name}: the key .* contains Python objects"):
        load_dataset(name, tmp_path)
    assert not (tmp_path / "executed").exists()


@pytest.mark.usefixtures("empty_cache")
def test_a_processed_folder_in_the_root_is_not_loaded(tmp_path: Path) -> None:
    entry = REGISTRY["texas"]
    folder = tmp_path / entry.folder
    folder.mkdir(parents=True)
    writer_of(entry)(entry, folder)
    processed = folder.parent / "processed"
    processed.mkdir()
    for name in ("data.pt", "pre_transform.pt", "pre_filter.pt"):
        torch.save(Payload(tmp_path / "executed"), processed / name)
    assert load_dataset("texas", tmp_path).num_nodes == 25
    assert not (tmp_path / "executed").exists()
