"""The nodes of a large graph in the order of their degrees.

Nodes that are gathered most often then lie together, and a block of rows reads and writes neighbouring memory.
"""

import torch
from torch import Tensor

from nfgnn.tensor_cache import TensorCache

_CACHE = TensorCache()
LARGE = 100_000
"""Nodes from which the order matters: below, all of a signal lies in the GPU's cache whatever the order."""


def degree_order(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """The nodes by degree, largest first, and the same edges between nodes that are numbered so; made once."""

    def make() -> tuple[Tensor, Tensor]:
        order = torch.argsort(
            torch.bincount(edge_index.flatten(), minlength=num_nodes), descending=True, stable=True
        )
        return order, rank_of(order)[edge_index]

    return _CACHE.lookup((edge_index,), num_nodes, make)


def rank_of(order: Tensor) -> Tensor:
    """The inverse permutation: where a node stands."""
    return torch.empty_like(order).scatter_(
        0, order, torch.arange(order.numel(), device=order.device)
    )
