"""Arrays of an ``.npz`` are mapped, whether they are compressed or not."""

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.raw_layouts import ogb_binary

from nfgnn.data import REGISTRY
from nfgnn.data.readers.mapped_arrays import map_member
from nfgnn.errors import UserError


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("compressed", [False, True])
def test_papers100m_is_mapped_not_read(compressed: bool, tmp_path: Path) -> None:
    entry = REGISTRY["ogbn-papers100m"]
    folder = tmp_path / ("compressed" if compressed else "plain")
    ogb_binary(entry, folder)
    x = map_member(folder / "raw/data.npz", "node_feat", tmp_path / "scratch")
    assert type(x).__name__ == "memmap"
    data = entry.read(folder)
    assert torch.equal(data.x, torch.from_numpy(x.copy()))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_python_objects_are_refused(save: object, tmp_path: Path) -> None:
    assert callable(save)
    save(tmp_path / "a.npz", x=np.array([{}, []], dtype=object))
    with pytest.raises((UserError, ValueError), match="objects"):
        map_member(tmp_path / "a.npz", "x", tmp_path / "scratch")


@pytest.mark.usefixtures("empty_cache")
def test_an_unpacked_array_that_was_changed_is_unpacked_again(tmp_path: Path) -> None:
    values = np.arange(100.0)
    np.savez_compressed(tmp_path / "g.npz", x=values)
    assert np.array_equal(map_member(tmp_path / "g.npz", "x", tmp_path / "scratch"), values)
    (unpacked,) = (tmp_path / "scratch").glob("*.npy")
    content = bytearray(unpacked.read_bytes())
    content[-8:] = bytes(8)
    unpacked.write_bytes(content)
    assert np.array_equal(map_member(tmp_path / "g.npz", "x", tmp_path / "scratch"), values)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_values_of_no_size_are_refused(save: object, tmp_path: Path) -> None:
    """NumPy divides by their size when it maps them, which ends the process."""
    assert callable(save)
    save(tmp_path / "a.npz", x=np.zeros(3, dtype="V0"))
    with pytest.raises(UserError, match="have no size"):
        map_member(tmp_path / "a.npz", "x", tmp_path / "scratch")
