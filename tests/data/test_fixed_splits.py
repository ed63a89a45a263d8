"""The splits of the LINKX study are those that NumPy reads, and their file never runs code."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.raw_layouts import writer_of
from torch_geometric.data import Data
from torch_geometric.datasets import LINKXDataset

from nfgnn.data import REGISTRY, load_dataset, split
from nfgnn.data.readers.fixed_splits import add_fixed_splits
from nfgnn.errors import UserError

MASKS = {"train_mask": "train", "val_mask": "valid", "test_mask": "test"}


def graph() -> Data:
    return Data(y=torch.zeros(30, dtype=torch.long))


def make_splits() -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    keys = ("train", "valid", "test")
    return [dict(zip(keys, np.array_split(rng.permutation(30), 3))) for _ in range(5)]


def save(path: Path, content: object) -> Path:
    np.save(path, np.array(content, dtype=object), allow_pickle=True)
    return path


@pytest.mark.parametrize("kind", ["numpy", "torch", "int32"])
def test_splits_are_those_that_numpy_reads(kind: str, tmp_path: Path) -> None:
    convert = {
        "numpy": np.asarray,
        "torch": torch.from_numpy,
        "int32": np.int32,
    }[kind]
    splits = [{key: convert(nodes) for key, nodes in s.items()} for s in make_splits()]
    path = save(tmp_path / "splits.npy", splits)
    expected = np.load(path, allow_pickle=True)
    data = add_fixed_splits(graph(), path)
    for name, key in MASKS.items():
        assert data[name].shape == (30, 5)
        for column, one in enumerate(expected):
            nodes = data[name][:, column].nonzero().flatten().tolist()
            assert nodes == sorted(int(node) for node in one[key])


def test_a_part_of_a_longer_tensor_is_read_and_a_wrong_size_refused(tmp_path: Path) -> None:
    longer = torch.arange(30)
    splits = [{"train": longer[5:9], "valid": longer[:2], "test": longer[20:]}]
    data = add_fixed_splits(graph(), save(tmp_path / "splits.npy", splits))
    assert data.train_mask[:, 0].nonzero().flatten().tolist() == [5, 6, 7, 8]
    path = save(tmp_path / "strided.npy", [{**splits[0], "train": longer[::2]}])
    with pytest.raises(UserError, match="with stride"):
        add_fixed_splits(graph(), path)
    path = save(tmp_path / "float.npy", [{**splits[0], "train": torch.rand(4)}])
    with pytest.raises(UserError, match="no code was run"):
        add_fixed_splits(graph(), path)


class Payload:
    """Creates a folder when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("place", ["element", "nodes", "storage"])
def test_a_payload_is_refused(place: str, tmp_path: Path) -> None:
    target = tmp_path / "created"
    splits: list[object] = [*make_splits()]
    if place == "element":
        splits[1] = Payload(target)
    elif place == "nodes":
        splits[1] = {**make_splits()[0], "train": Payload(target)}
    else:
        inner = pickle.dumps(Payload(target))
        splits[1] = {**make_splits()[0], "train": _TensorOf(inner)}
    path = save(tmp_path / "splits.npy", splits)
    with pytest.raises(UserError, match=r"splits\.npy: cannot be read as fixed splits.*no code"):
        add_fixed_splits(graph(), path)
    assert not target.exists()


class _TensorOf:
    """Is pickled as a tensor whose storage has this content."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __reduce__(self) -> tuple[object, ...]:
        return torch.storage._load_from_bytes, (self.content,)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            [{"train": np.arange(3), "valid": np.arange(3)}],
            "has no nodes for train, valid and test",
        ),
        ([], "no split"),
        ([3, 4], "has no nodes"),
        ([{"train": [1], "valid": np.arange(3), "test": np.arange(3)}], "are not an array"),
        ([dict.fromkeys(MASKS.values(), np.ones(3))], "not a list of whole numbers"),
        ([dict.fromkeys(MASKS.values(), np.array([30]))], "contains node 30"),
        ([dict.fromkeys(MASKS.values(), np.array([-1]))], "contains node -1"),
    ],
)
def test_invalid_content_is_refused(content: list, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        add_fixed_splits(graph(), save(tmp_path / "splits.npy", content))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "splits.npy", make_splits())
    valid = path.read_bytes()
    for content in (b"", valid[:50], valid[: len(valid) // 2], b"\x93NUMPY" + valid[6:9]):
        path.write_bytes(content)
        with pytest.raises(UserError, match="download the file again"):
            add_fixed_splits(graph(), path)
    np.save(path, np.arange(5))
    with pytest.raises(UserError, match="download the file again"):
        add_fixed_splits(graph(), path)


def test_penn94_has_the_splits_of_pytorch_geometric(tmp_path: Path) -> None:
    entry = REGISTRY["penn94"]
    folder = tmp_path / entry.folder
    folder.mkdir(parents=True)
    writer_of(entry)(entry, folder)
    theirs = LINKXDataset(str(tmp_path / "LINKXDataset"), "penn94")[0]
    ours = entry.read(folder)
    for name in MASKS:
        assert torch.equal(ours[name], theirs[name])


@pytest.mark.usefixtures("empty_cache")
def test_splits_that_are_added_later_are_found(tmp_path: Path) -> None:
    """A folder without the file of the splits still loads, and the cache does not hide it later."""
    entry = REGISTRY["genius"]
    folder = tmp_path / entry.folder
    folder.mkdir(parents=True)
    writer_of(entry)(entry, folder)
    splits = folder / "genius-splits.npy"
    content = splits.read_bytes()
    splits.unlink()
    data = load_dataset("genius", tmp_path)
    with pytest.raises(UserError, match="does not come with a split"):
        split(data, "public")
    splits.write_bytes(content)
    data = load_dataset("genius", tmp_path)
    expected = np.load(splits, allow_pickle=True)[2]["valid"]
    masks = split(data, "public", seed=7)  # five splits: the seed modulo 5
    assert masks.val_mask.nonzero().flatten().tolist() == sorted(expected)


def test_classes_of_arxiv_year_are_equally_frequent_periods(tmp_path: Path) -> None:
    entry = REGISTRY["arxiv-year"]
    writer_of(entry)(entry, tmp_path)
    y = entry.read(tmp_path).y
    # Node i is of year 2000 + i % 10, so a fifth of the nodes is of two following years.
    assert y.tolist() == [i % 10 // 2 for i in range(50)]


def test_features_of_twitch_gamers_are_standardised(tmp_path: Path) -> None:
    entry = REGISTRY["twitch-gamers"]
    writer_of(entry)(entry, tmp_path)
    data = entry.read(tmp_path)
    assert torch.allclose(data.x.mean(0), torch.zeros(7), atol=1e-6)
    assert torch.allclose(data.x.std(0), torch.ones(7), atol=1e-5)
    assert data.y.tolist() == [i % 2 for i in range(30)]
    language = torch.arange(30.0) % 3  # numbered in the order of appearance
    standard = (language - language.mean()) / language.std()
    assert torch.allclose(data.x[:, 5], standard, atol=1e-5)
    dates = torch.tensor([20160201.0 + i % 28 for i in range(30)], dtype=torch.float64)
    standard = (dates - dates.mean()) / dates.std()
    assert torch.allclose(data.x[:, 2].double(), standard, atol=1e-5)


def test_a_pipe_in_place_of_optional_splits_is_refused(tmp_path: Path) -> None:
    """It is no regular file, so the graph would silently be loaded without its splits."""
    os.mkfifo(tmp_path / "genius-splits.npy")
    with pytest.raises(UserError, match="pipe, socket or device"):
        REGISTRY["genius"].raw_files(tmp_path)
