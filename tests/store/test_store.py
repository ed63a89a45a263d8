"""A store returns what was written, and detects damage."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.store_graphs import make_store, small_graph

from nfgnn.data import FeatureScaling, split
from nfgnn.errors import UserError
from nfgnn.store import Store, verify_store, write_store
from nfgnn.store import store as store_module


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


def large(path: Path, dtype: str = "float32") -> Store:
    """A store of 12 MB, too large to be read in full on opening."""
    terms = torch.randn(4000, 4, 192, generator=torch.Generator().manual_seed(0))
    return write_store(path, terms, torch.arange(4000) % 3, dtype=dtype)


def overwrite(path: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Change the values of an array, but not its header."""
    content = path.read_bytes()
    values = np.frombuffer(content[128:], np.uint8)
    path.write_bytes(content[:128] + change(values).tobytes())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("change", [np.zeros_like, np.invert, np.flip], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["terms", "y", "nodes"])
def test_opening_finds_overwritten_files(
    name: str, change: Callable[[np.ndarray], np.ndarray], dtype: str, tmp_path: Path
) -> None:
    """Zeroed labels used to give a test accuracy of 100 %, and damaged terms were trained on."""
    store = large(tmp_path / "s", dtype)
    overwrite(store.path / f"{name}.npy", change)
    with pytest.raises(UserError, match=rf"{name}\.npy: block 0 of 1 is damaged; precompute"):
        Store.open(store.path)


@pytest.mark.parametrize("bit", range(0, 64, 9))
def test_opening_finds_a_flipped_bit_in_a_label(bit: int, tmp_path: Path) -> None:
    """A label of 2**60 used to keep the training busy for ever."""
    store = large(tmp_path / "s")
    path = store.path / "y.npy"
    content = bytearray(path.read_bytes())
    content[128 + 8 * 77 + bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"y\.npy: block 0 of 1 is damaged; precompute"):
        Store.open(store.path)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00v\x00{'descr': '<i8', "])
@pytest.mark.parametrize("name", ["terms", "y", "nodes", "val_mask"])
def test_an_empty_or_cut_file_is_refused(name: str, content: bytes, tmp_path: Path) -> None:
    store, _ = made(tmp_path / "s")
    (store.path / f"{name}.npy").write_bytes(content)
    with pytest.raises(UserError, match=rf"{name}\.npy: cannot be read .*; precompute the"):
        Store.open(store.path)


def test_a_named_pipe_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    store, _ = made(tmp_path / "s")
    (store.path / "y.npy").unlink()
    os.mkfifo(store.path / "y.npy")
    with pytest.raises(UserError, match=r"y\.npy: is missing, or not a file"):
        Store.open(store.path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("y", 3, "labels outside of the 3 classes"),
        ("y", -2, "labels outside of the 3 classes"),
        ("nodes", 99, "nodes of the graph"),
        ("nodes", -1, "nodes of the graph"),
    ],
)
def test_values_out_of_bounds_are_refused(
    name: str, value: int, message: str, tmp_path: Path
) -> None:
    """Also in a store whose checksums match."""
    terms = torch.ones(40, 2, 3)
    columns = {"y": torch.arange(40) % 3, "nodes": torch.arange(40)}
    columns[name][-1] = value
    with pytest.raises(UserError, match=rf"{name}\.npy: .*{message}"):
        write_store(
            tmp_path / "s", terms, columns["y"], nodes=columns["nodes"], num_nodes=99,
            class_names=["a", "b", "c"],
        )  # fmt: skip


def test_values_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    terms = torch.full((40, 2, 3), torch.nan)
    with pytest.raises(UserError, match=r"terms\.npy: .*not finite"):
        write_store(tmp_path / "s", terms, torch.arange(40) % 3)


def without_new_keys(store: Store) -> None:
    """Rewrite the manifest as earlier versions wrote it."""
    path = store.path / "manifest.json"
    content = json.loads(path.read_text())
    for key in ("kind", "samples", "checksum"):
        del content[key]
    path.write_text(json.dumps(content))


def test_a_store_of_an_earlier_version_is_opened_and_zeros_are_found(tmp_path: Path) -> None:
    store = large(tmp_path / "s")
    without_new_keys(store)
    assert Store.open(store.path).manifest.samples == []
    overwrite(store.path / "terms.npy", np.zeros_like)
    with pytest.raises(UserError, match=r"terms\.npy: block 0 of 1 is damaged"):
        Store.open(store.path)


def test_zeros_that_were_stored_are_accepted(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s", torch.zeros(4000, 4, 192), torch.arange(4000) % 3)
    without_new_keys(store)
    Store.open(store.path)


def test_verification_reports_every_damaged_file(tmp_path: Path) -> None:
    store = large(tmp_path / "s")
    assert verify_store(store.path) == (4, {})
    content = bytearray((store.path / "terms.npy").read_bytes())
    content[3_000_001] ^= 1  # between two samples
    (store.path / "terms.npy").write_bytes(content)
    Store.open(store.path)
    (store.path / "y.npy").write_bytes(b"")
    (store.path / "nodes.npy").unlink()
    _, damaged = verify_store(store.path)
    assert sorted(damaged) == ["nodes.npy", "terms.npy", "y.npy"]
    assert damaged["terms.npy"].startswith("block 0 of 1 is damaged")


def test_a_flipped_bit_in_any_file_of_a_store_is_found(tmp_path: Path) -> None:
    """Of a store with every part: sketches, ids, and a weighted graph for new nodes."""
    data = small_graph(weighted=True)
    data.node_ids = np.array([f"user {i}" for i in range(60)])
    store = make_store(data, tmp_path / "s", rows="all", serve=True, sketch=5)
    files = sorted(path.name for path in store.path.glob("*.npy"))
    parts = {"sketch", "id_text", "id_start", "id_order", "indptr", "indices", "scale", "weight"}
    assert {f"{part}.npy" for part in parts} < set(files)
    rng = np.random.default_rng(0)
    for name in files:
        path = store.path / name
        content = path.read_bytes()
        for place in rng.integers(128, len(content), 4).tolist():
            changed = bytearray(content)
            changed[place] ^= 1 << int(rng.integers(8))
            path.write_bytes(changed)
            with pytest.raises(UserError, match=f"{name}: .* is damaged"):
                Store.open(store.path)
            assert set(verify_store(store.path)[1]) == {name}
        path.write_bytes(content)
    assert verify_store(store.path) == (1 + len(files), {})


def test_opening_reads_a_small_part_of_the_terms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = large(tmp_path / "s")
    hashed = []
    original = store_module.checksum

    def count(array: np.ndarray) -> str:
        hashed.append(array.nbytes)
        return original(array)

    monkeypatch.setattr(store_module, "checksum", count)
    Store.open(store.path)
    assert hashed == [8 * 2**14]


def test_a_scaling_by_columns_is_stored(tmp_path: Path) -> None:
    x = torch.stack([torch.arange(40.0).exp2(), torch.arange(40.0) % 2], dim=1)
    scaling = FeatureScaling.fit(x)
    assert scaling.weight is not None
    terms = scaling.apply(x)[:, None].contiguous()
    store = write_store(tmp_path / "store", terms, torch.arange(40) % 2, scaling=scaling)
    assert store.scaling.equals(scaling)
