"""A registered data set is recognised by its content, never by the name of a file."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from nfgnn.data import check_graph, export_graph, fingerprints, load_dataset, mixed_graph
from nfgnn.data.fingerprints import Size, content_hash, known_fingerprints
from nfgnn.data.write_fingerprints import write_fingerprints
from nfgnn.training.inputs import resolve_config


def graph() -> Data:
    """A small graph with twelve classes, whose numbers sort differently as text."""
    data = mixed_graph(120, 12, num_features=6, seed=2)
    data.class_names = [str(c) for c in range(12)]
    data.y[::17] = -1
    del data.pattern
    return data


@pytest.fixture
def cornell(monkeypatch: pytest.MonkeyPatch) -> Data:
    """A graph that stands for the data set cornell."""
    data = graph()
    known = {"cornell": (Size.of(data), content_hash(data))}
    monkeypatch.setattr(fingerprints, "known_fingerprints", lambda: known)
    return data


@pytest.mark.parametrize("file_format", ["csv", "parquet", "npz"])
def test_content_is_recognised_under_any_name(
    cornell: Data, tmp_path: Path, file_format: str
) -> None:
    suffix = ".npz" if file_format == "npz" else ""
    path = export_graph(cornell, tmp_path / f"something{suffix}", file_format)
    data = load_dataset(path)
    assert data.registered_name == "cornell"
    assert data.name == "something"
    assert "the data set cornell, whose presets apply" in data.notes[-1]
    config = resolve_config(data, "NFGNN", {}, "full", "best")
    assert config.hyper["hidden_channels"] == 128  # only in the table of Cornell


def test_a_file_name_selects_nothing(cornell: Data, tmp_path: Path) -> None:
    cornell.x = cornell.x + 1
    data = load_dataset(export_graph(cornell, tmp_path / "cornell.npz", "npz"))
    assert data.name == "cornell"
    assert data.get("registered_name") is None
    config = resolve_config(data, "NFGNN", {}, "full", "best")
    other = Data.from_dict({**data.to_dict(), "name": "other"})
    assert config == resolve_config(other, "NFGNN", {}, "full", "best")
    assert config.hyper["hidden_channels"] != 128


def test_objects_are_recognised(cornell: Data) -> None:
    cornell.name = "my graph"
    assert load_dataset(cornell).registered_name == "cornell"
    cornell.x = cornell.x + 1  # the attribute of the loaded graph does not survive other content
    cornell.registered_name = "cornell"
    assert load_dataset(cornell).get("registered_name") is None


def test_a_name_that_content_cannot_confirm_is_kept() -> None:
    mixed = load_dataset("mixed", num_nodes=60)
    assert mixed.registered_name == "mixed"
    assert load_dataset(mixed).registered_name == "mixed"


def change_nothing_that_counts(data: Data) -> None:
    data.train_mask = torch.ones(data.num_nodes, dtype=torch.bool)
    data.name = "other"
    data.x = data.x.to_sparse_csr()
    data.y = torch.where(data.y >= 0, 11 - data.y, data.y)


def change_feature(data: Data) -> None:
    data.x[3, 2] += 1e-3


def change_label(data: Data) -> None:
    data.y[1] = (data.y[1] + 1) % 12


def remove_label(data: Data) -> None:
    data.y[1] = -1


def change_edge(data: Data) -> None:
    data.edge_index = data.edge_index[:, 1:]


def add_weights(data: Data) -> None:
    data.edge_weight = torch.ones(data.edge_index.size(1))


def test_what_does_not_count() -> None:
    one = graph()
    other = copy.copy(one)
    change_nothing_that_counts(other)
    assert content_hash(one) == content_hash(other)


@pytest.mark.parametrize(
    "change", [change_feature, change_label, remove_label, change_edge, add_weights]
)
def test_what_counts(change: Callable[[Data], None]) -> None:
    one = graph()
    other = graph()
    change(other)
    assert content_hash(one) != content_hash(other)


def test_a_graph_of_another_size_is_not_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(data: Data) -> str:
        raise AssertionError

    monkeypatch.setattr(fingerprints, "content_hash", fail)
    assert fingerprints.recognise(check_graph(graph())) is None


def test_the_committed_fingerprints_are_those_of_the_raw_files(
    data_root: Path, tmp_path: Path
) -> None:
    for name in ("texas", "cornell", "cornell-genuine"):
        data = load_dataset(name, data_root)
        assert known_fingerprints()[name] == (Size.of(data), content_hash(data))
        path = export_graph(data, tmp_path / f"{name} graph.npz", "npz")
        assert load_dataset(path).registered_name == name


def test_lines_of_missing_data_sets_are_kept(tmp_path: Path, empty_cache: Path) -> None:
    file = tmp_path / "fingerprints.txt"
    assert write_fingerprints(tmp_path, file) == []
    assert file.read_text() == fingerprints.FILE.read_text()
