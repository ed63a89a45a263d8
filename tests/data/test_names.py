"""Names of features and classes may be any sequence, wherever they are read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from nfgnn.data import (
    check_feature_names,
    class_names_of,
    export_graph,
    load_dataset,
    load_new_nodes,
    names_of,
)
from nfgnn.data.export import FORMATS
from nfgnn.data.names import repeated_names
from nfgnn.errors import UserError
from nfgnn.store import MemorySource

SEQUENCES = [list, tuple, np.array, pd.Index]


def graph(kind: Callable[..., Any]) -> Data:
    """Return a graph whose names are a sequence of this kind."""
    data = load_dataset(
        Data(
            x=torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
            edge_index=torch.tensor([[0, 1], [1, 2]]),
            y=torch.tensor([0, 1, 1]),
        )
    )
    data.feature_names = kind(["age", "income"])
    data.class_names = kind(["no", "yes"])
    return data


@pytest.mark.parametrize("kind", SEQUENCES)
@pytest.mark.parametrize("file_format", FORMATS)
def test_exported_names(kind: Callable[..., Any], file_format: str, tmp_path: Path) -> None:
    path = tmp_path / ("g.npz" if file_format == "npz" else "g")
    loaded = load_dataset(export_graph(graph(kind), path, file_format))
    assert loaded.feature_names == ["age", "income"]
    assert loaded.class_names == ["no", "yes"]
    assert loaded.y.tolist() == [0, 1, 1]


@pytest.mark.parametrize("kind", SEQUENCES)
def test_names_of_the_graph_of_new_nodes(kind: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,income,age\nnew,8,7\n")
    (tmp_path / "edges.csv").write_text("source,target\nnew,0\n")
    assert load_new_nodes(tmp_path, graph(kind)).x.tolist() == [[7.0, 8.0]]


@pytest.mark.parametrize("kind", SEQUENCES)
def test_names_of_a_graph_to_precompute(kind: Callable[..., Any]) -> None:
    source = MemorySource(graph(kind))
    assert source.feature_names == ["age", "income"]
    assert source.class_names == ["no", "yes"]


@pytest.mark.parametrize("kind", SEQUENCES)
def test_validation_keeps_names(kind: Callable[..., Any]) -> None:
    loaded = load_dataset(graph(kind))
    assert loaded.feature_names == ["age", "income"]
    assert loaded.class_names == ["no", "yes"]


@pytest.mark.parametrize("names", ["ab", {"a": 1, "b": 2}, 2, torch.ones(2)])
def test_validation_drops_what_is_no_sequence_of_names(names: object) -> None:
    data = graph(list)
    data.feature_names = names
    assert "feature_names" not in load_dataset(data)


def test_names_are_text() -> None:
    data = Data(feature_names=[3, "b"], y=torch.tensor([1, -1, 0]))
    assert names_of(data, "feature_names") == ["3", "b"]
    assert names_of(data, "class_names") is None
    assert class_names_of(data) == ["0", "1"]
    assert class_names_of(Data(y=torch.tensor([-1]))) == []


def test_repeated_names() -> None:
    assert repeated_names(["b", "a", "c", "a", "b"]) == ["b", "a"]
    assert repeated_names(["a", "b"]) == []


def test_the_number_of_names_is_that_of_the_features() -> None:
    check_feature_names(["a", "b"], 2, "g")
    check_feature_names([], 2, "g")
    check_feature_names(None, 2, "g")
    with pytest.raises(UserError, match=r"^g: `feature_names` has 3 names for 2 features; give"):
        check_feature_names(["a", "b", "c"], 2, "g")
