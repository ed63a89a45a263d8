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
    with pytest.raises(UserError, match="is not a store"):
        Store.open(store.path)
    (store.path / "work").mkdir()
    with pytest.raises(UserError, match="is an unfinished store"):
        Store.open(store.path)
