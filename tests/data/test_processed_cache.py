"""Processed graphs are cached, and the cache can be missing, damaged or hostile."""

import os
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from helpers.raw_layouts import writer_of

from nfgnn.data import REGISTRY, load_dataset

NAMES = [
    "cora",
    "citeseer",
    "pubmed",
    "computers",
    "photo",
    "chameleon",
    "squirrel",
    "actor",
    "texas",
    "cornell",
    "cornell-genuine",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_is_the_same_from_the_raw_files_and_from_the_cache(
    name: str, data_root: Path
) -> None:
    first, second = load_dataset(name, data_root), load_dataset(name, data_root)
    assert first.to_dict().keys() == second.to_dict().keys()
    assert first.notes == second.notes
    for key in ("edge_index", "y"):
        assert torch.equal(first[key], second[key])
    assert torch.equal(first.x.to_dense(), second.x.to_dense())


def test_a_cache_that_cannot_be_written_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_root: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load_dataset("texas", data_root).num_nodes == 183


class Payload:
    """Creates a folder when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.target),)


def invalid_csr() -> torch.Tensor:
    """A sparse tensor whose column is far out of bounds."""
    crow, col = torch.tensor([0, 1]), torch.tensor([10**9])
    return torch.sparse_csr_tensor(crow, col, torch.ones(1), (1, 2), check_invariants=False)


@pytest.mark.usefixtures("empty_cache")
def test_pipes_in_the_cache_do_not_hang(tmp_path: Path) -> None:
    entry = REGISTRY["cora"]
    (tmp_path / "root" / entry.folder).mkdir(parents=True)
    writer_of(entry)(entry, tmp_path / "root" / entry.folder)
    first = load_dataset("cora", tmp_path / "root")
    for path in sorted((tmp_path / "cache").rglob("*")):
        if path.is_file():
            path.unlink()
            os.mkfifo(path)
    assert torch.equal(first.edge_index, load_dataset("cora", tmp_path / "root").edge_index)


@pytest.mark.parametrize("kind", ["payload", "invalid tensor", "other edges", "junk"])
@pytest.mark.usefixtures("empty_cache")
def test_an_unusable_cached_graph_is_read_again(kind: str, tmp_path: Path) -> None:
    entry = REGISTRY["cora"]
    (tmp_path / "root" / entry.folder).mkdir(parents=True)
    writer_of(entry)(entry, tmp_path / "root" / entry.folder)
    first = load_dataset("cora", tmp_path / "root")
    (cached,) = (tmp_path / "cache").rglob("cora-*.pt")
    if kind == "payload":
        torch.save({"x": Payload(tmp_path / "executed")}, cached)
    elif kind == "invalid tensor":
        torch.save({"x": invalid_csr()}, cached)
    elif kind == "other edges":
        torch.save({**first.to_dict(), "edge_index": first.edge_index.flip(1)}, cached)
    else:
        cached.write_bytes(b"junk")
    if kind != "other edges":
        # Even with a checksum that fits, no code is run and no invalid tensor is used.
        cached.with_suffix(".sha256").write_text(sha256(cached.read_bytes()).hexdigest())
    again = load_dataset("cora", tmp_path / "root")
    assert not (tmp_path / "executed").exists()
    assert torch.equal(first.edge_index, again.edge_index)
