"""Small graphs whose measures are known."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import load_dataset


def two_way(*edges: tuple[int, int]) -> Tensor:
    """Return ``edge_index`` with every edge in both directions."""
    return torch.tensor([*edges, *((b, a) for a, b in edges)]).T


def own_graph(y: list[int] | None, name: str = "own") -> Data:
    """Return a path 0 - 1 - 2 - 3, a triangle 4 5 6, and an isolated node 7."""
    edges = two_way((0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (4, 6))
    data = Data(
        edge_index=edges,
        x=torch.eye(8),
        num_nodes=8,
        y=None if y is None else torch.tensor(y),
        name=name,
    )
    return load_dataset(data, need_labels=False)
