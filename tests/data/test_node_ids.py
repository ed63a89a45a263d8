"""Ids of nodes in the forms that users have."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from nfgnn.data import ExistingNodes, export_graph, ids_as_array, load_dataset
from nfgnn.store import MemorySource


def graph(node_ids: Any) -> Data:
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    return load_dataset(
        Data(x=torch.eye(3), edge_index=edge_index, y=torch.tensor([0, 1, 0]), node_ids=node_ids)
    )


@pytest.mark.parametrize("kind", [list, tuple, np.array, torch.tensor])
def test_numbers_stay_numbers(kind: Any, tmp_path: Path) -> None:
    data = graph(kind([30, 7, 100]))
    assert ids_as_array(data.node_ids).to_pylist() == [30, 7, 100]
    assert MemorySource(data).node_ids.to_pylist() == [30, 7, 100]
    assert ExistingNodes.of_graph(data).find(["100", "8", "30"]).tolist() == [2, -1, 0]
    exported = load_dataset(export_graph(data, tmp_path / "graph", "parquet"))
    assert list(exported.node_ids) == [30, 7, 100]
