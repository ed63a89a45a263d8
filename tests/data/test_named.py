"""Every name loads: the real graphs where their files are, files of the published layout for all."""

import stat
from pathlib import Path

import pytest
import torch
from helpers.raw_layouts import ogb_binary, writer_of

from nfgnn.data import Entry, dataset_names, load_dataset
from nfgnn.data.download import find_raw_files
from nfgnn.data.readers.mapped_arrays import map_member
from nfgnn.data.registry import REGISTRY, canonical_name
from nfgnn.errors import UserError

REAL = [
    "cora",
    "citeseer",
    "computers",
    "photo",
    "chameleon",
    "squirrel",
    "actor",
    "texas",
    "cornell",
    "cornell-genuine",
]


@pytest.mark.parametrize("name", REAL)
def test_real_graphs_have_the_size_of_the_table(name: str, data_root: Path) -> None:
    data, entry = load_dataset(name, data_root), REGISTRY[name]
    size = (data.num_nodes, data.edge_index.size(1) // 2, data.num_features, data.num_classes)
    assert size == (entry.nodes, entry.edges, entry.features, entry.classes)
    assert data.name == name


@pytest.mark.parametrize("name", REAL)
def test_a_graph_is_the_same_from_the_raw_files_and_from_the_cache(
    name: str, data_root: Path
) -> None:
    first, second = load_dataset(name, data_root), load_dataset(name, data_root)
    assert first.to_dict().keys() == second.to_dict().keys()
    assert first.notes == second.notes
    for key in ("edge_index", "y"):
        assert torch.equal(first[key], second[key])
    assert torch.equal(first.x.to_dense(), second.x.to_dense())


def test_fixed_splits_are_kept(data_root: Path) -> None:
    assert load_dataset("texas", data_root).train_mask.shape == (183, 10)
    assert load_dataset("cora", data_root).train_mask.sum() == 140


def test_citeseer_nodes_without_label_have_none(data_root: Path) -> None:
    data = load_dataset("citeseer", data_root)
    unlabelled = data.y < 0
    assert int(unlabelled.sum()) == 15
    assert float(data.x.to_dense()[unlabelled].abs().sum()) == 0


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_name_loads_from_files_of_its_layout(name: str, tmp_path: Path) -> None:
    entry = REGISTRY[name]
    folder = tmp_path / "root" / entry.folder
    folder.mkdir(parents=True)
    truth = writer_of(entry)(entry, folder)
    data = load_dataset(name, root=tmp_path / "root")
    assert data.num_nodes == truth["nodes"]
    assert data.edge_index.size(1) == 2 * truth["edges"]
    assert data.num_features == truth["features"]
    assert data.num_classes == truth["classes"]
    assert int((data.y < 0).sum()) == truth.get("unlabelled", 0)
    assert data.metric == entry.metric
    splits = data.get("train_mask")
    assert truth["splits"] == (0 if splits is None else 1 if splits.dim() == 1 else splits.size(1))


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("name", ["cora", "texas", "roman-empire", "penn94", "ogbn-arxiv", "cs"])
def test_a_read_only_root_stays_as_it_is(name: str, tmp_path: Path) -> None:
    entry = REGISTRY[name]
    folder = tmp_path / "root" / entry.folder
    folder.mkdir(parents=True)
    writer_of(entry)(entry, folder)
    before = sorted(tmp_path.joinpath("root").rglob("*"))
    for path in before:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    try:
        load_dataset(name, root=tmp_path / "root")
        assert sorted(tmp_path.joinpath("root").rglob("*")) == before
    finally:
        for path in before:
            path.chmod(path.stat().st_mode | stat.S_IWUSR)


def test_a_cache_that_cannot_be_written_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_root: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load_dataset("texas", data_root).num_nodes == 183


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


@pytest.mark.parametrize("name", sorted(dataset_names()))
def test_names_are_forgiving(name: str) -> None:
    for spelling in (
        name.upper(),
        name.replace("-", "_"),
        name.replace("-", " ").title(),
        f" {name} ",
    ):
        assert canonical_name(spelling) == name


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(UserError, match="did you mean cora"):
        load_dataset("corra")


def test_order_of_look_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path
) -> None:
    entry = REGISTRY["minesweeper"]
    places = [tmp_path / "given", tmp_path / "environment", empty_cache / "raw"]
    for place in places:
        (place / entry.folder).mkdir(parents=True)
    monkeypatch.setenv("NFGNN_DATA", str(places[1]))
    for place in reversed(places):
        writer_of(entry)(entry, place / entry.folder)
        assert find_raw_files(entry, places[0]) == place / entry.folder


@pytest.mark.usefixtures("empty_cache")
def test_a_folder_as_one_class_leaves_it_is_found(tmp_path: Path) -> None:
    entry = REGISTRY["minesweeper"]
    (tmp_path / "minesweeper/raw").mkdir(parents=True)
    writer_of(entry)(entry, tmp_path / "minesweeper/raw")
    assert find_raw_files(entry, tmp_path) == tmp_path / "minesweeper/raw"


@pytest.mark.usefixtures("empty_cache")
def test_damaged_files_are_named(tmp_path: Path) -> None:
    entry = REGISTRY["minesweeper"]
    (tmp_path / entry.folder).mkdir(parents=True)
    (tmp_path / entry.folder / entry.required[0]).write_bytes(b"no zip at all")
    with pytest.raises(UserError, match=r"minesweeper: the files in .* cannot be read"):
        load_dataset("minesweeper", tmp_path)


def test_entries_are_complete() -> None:
    for entry in REGISTRY.values():
        assert isinstance(entry, Entry)
        assert entry.metric in ("accuracy", "roc_auc")
        assert entry.source
        assert entry.licence
        assert entry.megabytes > 0
        assert all(url.startswith("http") for url in entry.urls.values())
