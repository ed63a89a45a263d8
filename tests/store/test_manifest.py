"""Manifests are restored, and those that cannot be used are rejected."""

import json
from pathlib import Path

import pytest
import torch

from nfgnn.errors import UserError
from nfgnn.store import Manifest, Store, write_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(tmp_path / "s", torch.ones(4, 3, 2), torch.arange(4), dataset="ä")


def test_a_manifest_is_restored(store: Store) -> None:
    assert Manifest.read(store.path) == store.manifest
    assert store.manifest.shape == (4, 3, 2)
    assert (store.manifest.dataset, store.manifest.num_classes) == ("ä", 4)


def test_unusable_manifests_are_rejected(store: Store) -> None:
    path = store.path / "manifest.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"format": 99}))
    with pytest.raises(UserError, match="format 99"):
        Store.open(store.path)
    for damaged in ("{", "[]", "{}", json.dumps({**content, "K": 1}).replace('"K"', '"L"')):
        path.write_text(damaged)
        with pytest.raises(UserError, match="is damaged"):
            Store.open(store.path)
    path.unlink()
    with pytest.raises(UserError, match=r"manifest\.json: is missing, or not a file; precompute"):
        Store.open(store.path)
    (store.path / "work").mkdir()
    with pytest.raises(UserError, match="is an unfinished store"):
        Store.open(store.path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("lambda_max", 3.0), ("basis", "monomial"), ("class_names", ["a", "b", "c", "e"])],
)
def test_a_changed_manifest_is_rejected(store: Store, key: str, value: object) -> None:
    path = store.path / "manifest.json"
    content = json.loads(path.read_text())
    assert (content["kind"], content["format"]) == ("nfgnn store", 1)
    path.write_text(json.dumps({**content, key: value}))
    with pytest.raises(UserError, match=r"manifest\.json: is damaged .*its checksum differs"):
        Store.open(store.path)
    del content["checksum"]
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match="its checksum differs"):
        Store.open(store.path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_rows", "4"),
        ("num_rows", -4),
        ("num_rows", None),
        ("K", -1),
        ("block_rows", 0),
        ("dtype", "float8"),
        ("masks", ["../secret"]),
        ("checksums", {}),
        ("checksums", {"terms": {"0": "x"}, "nodes": ["x"], "y": ["x"]}),
        ("samples", {"0": "x"}),
        ("class_names", ["a"]),
        ("class_names", ["a", "b", "c", 4]),
        ("class_names", ["a", "b", "c", "c"]),
        ("basis", "-1"),
        ("lambda_max", []),
        ("feature_mean", {"a": 1}),
        ("feature_mean", [0.0]),
        ("feature_scaling", {"unknown": [1.0]}),
    ],
)
def test_impossible_values_without_a_checksum_are_rejected(
    store: Store, key: str, value: object
) -> None:
    """Manifests of earlier versions have no checksum."""
    path = store.path / "manifest.json"
    content = json.loads(path.read_text())
    del content["checksum"]
    del content["kind"]
    path.write_text(json.dumps({**content, key: value}))
    with pytest.raises(UserError, match=r"manifest\.json: is damaged"):
        Store.open(store.path)
