"""New nodes pass the validation that graphs pass."""

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from nfgnn.data import load_dataset, load_new_nodes
from nfgnn.errors import UserError


@pytest.fixture
def graph(tmp_path: Path) -> Data:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/nodes.csv").write_text("id,label,f\na,x,1\nb,y,2\nc,x,3\n")
    (tmp_path / "old/edges.csv").write_text("source,target,weight\na,b,1\nb,c,2\n")
    return load_dataset(tmp_path / "old")


def new_nodes(folder: Path, weight: str = "1", feature: str = "4") -> Path:
    folder.mkdir()
    (folder / "nodes.csv").write_text(f"id,f\nd,{feature}\n")
    (folder / "edges.csv").write_text(f"source,target,weight\nd,b,1\nd,a,{weight}\n")
    return folder


def test_valid_new_nodes(graph: Data, tmp_path: Path) -> None:
    new = load_new_nodes(new_nodes(tmp_path / "new", "0.5"), graph)
    assert new.edge_index.tolist() == [[0, 1], [3, 3]]
    assert new.edge_weight.tolist() == [0.5, 1.0]


@pytest.mark.parametrize("weight", ["-1", "1e39", "1e400", "inf", "nan", ""])
def test_an_invalid_weight_is_refused(weight: str, graph: Data, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"edges\.csv.*weight"):
        load_new_nodes(new_nodes(tmp_path / "new", weight), graph)


@pytest.mark.parametrize("feature", ["1e39", "inf", "nan", "", "text"])
def test_an_invalid_feature_is_refused(feature: str, graph: Data, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nodes\.csv"):
        load_new_nodes(new_nodes(tmp_path / "new", feature=feature), graph)


def test_a_weight_that_vanishes_is_no_edge(graph: Data, tmp_path: Path) -> None:
    new = load_new_nodes(new_nodes(tmp_path / "new", "1e-300"), graph)
    assert torch.equal(new.edge_index, torch.tensor([[1], [3]]))
    assert new.notes == ["dropped 1 edge whose weight is 0 in float32"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["f", "f", "g"], r"several features of the graph have the name 'f'.*nodes\.csv"),
        (["f", "g"], "the graph: `feature_names` has 2 names for 3 features"),
        (["f", "g", "h", "f"], "the graph: `feature_names` has 4 names for 3 features"),
    ],
)
def test_names_that_do_not_identify_features_are_refused(
    names: list[str], message: str, graph: Data, tmp_path: Path
) -> None:
    graph.x = torch.arange(9.0).view(3, 3)
    graph.feature_names = names
    folder = new_nodes(tmp_path / "new")
    (folder / "nodes.csv").write_text("id,f,g\nd,4,5\n")
    with pytest.raises(UserError, match=message):
        load_new_nodes(folder, graph)
