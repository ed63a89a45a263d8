"""Data issues are found in the graph, not by its name."""

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from nfgnn.data import check_graph, load_dataset
from nfgnn.data.diagnostics import Finding, diagnose, twins


def found(data: Data, root: Path | None = None) -> dict[str, Finding]:
    return {finding.kind: finding for finding in diagnose(data, root)}


def star() -> Data:
    """Node 0 in the middle; 1, 2 and 3 are leaves, 4 hangs on 3, 5 is alone."""
    return check_graph(
        Data(
            x=torch.tensor([[1.0], [0.0], [1.0], [1.0], [1.0], [1.0]]),
            edge_index=torch.tensor([[0, 0, 0, 3], [1, 2, 3, 4]]),
            y=torch.tensor([0, 1, 1, 1, 1, -1]),
        )
    )


def test_by_hand() -> None:
    findings = found(star())
    assert twins(star()).tolist() == [False, True, True, False, False, False]
    assert findings["twins"].count == 2
    assert findings["twins"].share == pytest.approx(1 / 3)
    assert findings["empty_features"].count == 1
    assert findings["isolated"].count == 1
    assert findings["unlabelled"].count == 1
    assert findings["small_classes"].text.startswith("class 0")


def test_twins_need_the_same_label() -> None:
    data = star()
    data.y[2] = 0
    assert not bool(twins(data).any())


def test_a_clean_graph_has_no_findings() -> None:
    ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    data = check_graph(Data(x=torch.rand(12, 3) + 0.1, edge_index=ring, y=torch.arange(12) % 2))
    assert diagnose(data) == []


def test_cornell_has_the_nodes_of_texas(data_root: Path) -> None:
    assert (
        "labels of texas" in found(load_dataset("cornell", data_root), data_root)["same_nodes"].text
    )
    assert "same_nodes" not in found(load_dataset("cornell-genuine", data_root), data_root)


def test_a_users_copy_is_recognised_whatever_its_order(data_root: Path) -> None:
    texas = load_dataset("texas", data_root)
    order = torch.randperm(183, generator=torch.Generator().manual_seed(0))
    mine = check_graph(
        Data(x=texas.x.to_dense()[order], y=texas.y[order], edge_index=torch.tensor([[0], [1]]))
    )
    assert any("labels of texas" in finding.text for finding in diagnose(mine, data_root))


@pytest.mark.parametrize(("name", "share"), [("chameleon", 0.567), ("squirrel", 0.495)])
def test_half_of_the_wikipedia_nodes_have_twins(name: str, share: float, data_root: Path) -> None:
    assert found(load_dataset(name, data_root), data_root)["twins"].share == pytest.approx(
        share, abs=0.001
    )


def test_citeseer_and_texas(data_root: Path) -> None:
    citeseer = found(load_dataset("citeseer", data_root), data_root)
    assert (
        citeseer["unlabelled"].count,
        citeseer["isolated"].count,
        citeseer["empty_features"].count,
    ) == (
        15,
        48,
        15,
    )
    assert found(load_dataset("texas", data_root), data_root)["small_classes"].count == 1
