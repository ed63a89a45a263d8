"""A store returns what was written, and detects damage."""

from pathlib import Path

import numpy as np
import pytest
import torch

from nfgnn.data import FeatureScaling, split
from nfgnn.errors import UserError
from nfgnn.store import Store, write_store


def made(path: Path, dtype: str = "float32", **more: object) -> tuple[Store, torch.Tensor]:
    terms = torch.randn(40, 4, 6, generator=torch.Generator().manual_seed(0))
    y = torch.arange(40) % 3
    y[5] = -1
    masks = {
        name: torch.arange(40) % 4 == i
        for i, name in enumerate(("train_mask", "val_mask", "test_mask"))
    }
    return write_store(path, terms, y, masks=masks, num_nodes=99, dtype=dtype, **more), terms


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rows_are_rounded_to_the_stored_type(tmp_path: Path, dtype: str) -> None:
    store, terms = made(tmp_path / "s", dtype)
    rounded = terms.to(getattr(torch, dtype)).float()
    index = torch.tensor([7, 0, 39, 7])
    assert store.rows(index).dtype == torch.float32
    assert torch.equal(store.rows(index), rounded[index])
    assert torch.equal(store.rows(slice(3, 9)), rounded[3:9])
    assert store.terms.shape == (40, 4, 6)


def test_labels_can_be_split(tmp_path: Path) -> None:
    store, _ = made(tmp_path / "s")
    data = store.labels()
    assert data.num_nodes == 40
    assert data.num_classes == 3
    assert torch.equal(split(data, "public").val_mask, torch.arange(40) % 4 == 1)
    parts = split(data, "stratified", seed=1)
    assert int((parts.train_mask | parts.val_mask | parts.test_mask).sum()) == 39
    assert not bool((parts.train_mask & parts.test_mask).any())


def test_the_scaling_is_restored_exactly(tmp_path: Path) -> None:
    x = torch.randn(50, 6, generator=torch.Generator().manual_seed(1)) * 3 + 1
    fitted = FeatureScaling.fit(x, "standard")
    store, _ = made(tmp_path / "s", scaling=fitted)
    assert torch.equal(Store.open(tmp_path / "s").scaling.apply(x), fitted.apply(x))
    assert store.manifest.features == "standard"


def test_checksums_detect_a_changed_byte(tmp_path: Path) -> None:
    store, _ = made(tmp_path / "s")
    Store.open(store.path, verify="checksums")
    for name in ("terms", "nodes", "y", "val_mask"):
        path = store.path / f"{name}.npy"
        before = path.read_bytes()
        path.write_bytes(before[:-3] + bytes([before[-3] ^ 1]) + before[-2:])
        with pytest.raises(UserError, match=rf"{name}\.npy: block 0 of 1 is damaged"):
            Store.open(store.path, verify="checksums")
        path.write_bytes(before)


def test_truncated_missing_and_wrong_files_are_reported_on_opening(tmp_path: Path) -> None:
    store, _ = made(tmp_path / "s")
    path = store.path / "terms.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(UserError, match=r"terms\.npy: is truncated"):
        Store.open(store.path)
    np.save(path, np.zeros((40, 3, 6), np.float32))
    with pytest.raises(UserError, match="the manifest says float32"):
        Store.open(store.path)
    path.unlink()
    with pytest.raises(UserError, match="is missing"):
        Store.open(store.path)
