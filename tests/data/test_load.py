"""Every name loads: real graphs where their files are available, small written files for all."""

import stat
from pathlib import Path

import pytest
from helpers.raw_layouts import writer_of

from nfgnn.data import REGISTRY, load_dataset
from nfgnn.errors import UserError

REAL = [
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


@pytest.mark.parametrize("name", REAL)
def test_real_graphs_have_the_size_of_the_table(name: str, data_root: Path) -> None:
    data, entry = load_dataset(name, data_root), REGISTRY[name]
    size = (data.num_nodes, data.edge_index.size(1) // 2, data.num_features, data.num_classes)
    assert size == (entry.nodes, entry.edges, entry.features, entry.classes)
    assert data.name == name


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


def test_an_unknown_name_gets_suggestions() -> None:
    with pytest.raises(UserError, match="did you mean cora"):
        load_dataset("corra")


@pytest.mark.usefixtures("empty_cache")
def test_damaged_files_are_named(tmp_path: Path) -> None:
    entry = REGISTRY["minesweeper"]
    (tmp_path / entry.folder).mkdir(parents=True)
    (tmp_path / entry.folder / entry.required[0]).write_bytes(b"no zip at all")
    with pytest.raises(UserError, match=r"minesweeper: the files in .* cannot be read"):
        load_dataset("minesweeper", tmp_path)


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    (tmp_path / "graph.xlsx").touch()
    with pytest.raises(UserError, match=r"graph\.xlsx: graphs are read from"):
        load_dataset(tmp_path / "graph.xlsx")
