"""Graphs in files of plain tensors."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch_geometric.data import Data

from nfgnn.data import load_dataset
from nfgnn.errors import UserError


@pytest.mark.parametrize("ending", ["pt", "safetensors"])
def test_a_saved_graph_of_tensors(ending: str, tmp_path: Path) -> None:
    content = {
        "x": torch.rand(3, 2),
        "edge_index": torch.tensor([[0, 1], [1, 2]]),
        "y": torch.tensor([0, 1, 0]),
    }
    path = tmp_path / f"graph.{ending}"
    if ending == "pt":
        torch.save(Data(**content).to_dict(), path)
    else:
        save_file(content, path)
    assert torch.equal(load_dataset(path).x, content["x"])


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.target,)


def test_nothing_is_ever_unpickled(tmp_path: Path) -> None:
    torch.save(Payload(tmp_path / "executed"), tmp_path / "graph.pt")
    with pytest.raises(UserError, match=r"graph\.pt: is not a file of plain tensors"):
        load_dataset(tmp_path / "graph.pt")
    assert not (tmp_path / "executed").exists()


def test_a_sparse_tensor_out_of_bounds_is_refused(tmp_path: Path) -> None:
    crow, col = torch.arange(4), torch.tensor([0, 1, 10**9])
    x = torch.sparse_csr_tensor(crow, col, torch.ones(3), (3, 2), check_invariants=False)
    content = {"x": x, "edge_index": torch.tensor([[0], [1]]), "y": torch.tensor([0, 1, 1])}
    torch.save(content, tmp_path / "graph.pt")
    with pytest.raises(UserError, match=r"graph\.pt"):
        load_dataset(tmp_path / "graph.pt")
