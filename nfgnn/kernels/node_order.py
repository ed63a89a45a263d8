"""Order the nodes of a large graph by degree.

Nodes that are read most often then lie together in memory, and a block of rows reads and writes
neighbouring addresses.
"""

import torch
from torch import Tensor

from nfgnn.tensor_cache import TensorCache

_CACHE = TensorCache()
LARGE = 100_000
"""Number of nodes from which the order matters. Smaller signals fit in the cache of the GPU."""


def degree_order(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Return the nodes by decreasing degree, and the edges between nodes renumbered in that order.

    The result is cached for the life of ``edge_index``.
    """

    def make() -> tuple[Tensor, Tensor]:
        degree = torch.bincount(edge_index.flatten(), minlength=num_nodes)
        order = torch.argsort(degree, descending=True, stable=True)
        return order, inverse(order)[edge_index]

    return _CACHE.lookup((edge_index,), num_nodes, make)


def inverse(order: Tensor) -> Tensor:
    """Return the inverse of a permutation."""
    positions = torch.arange(order.numel(), device=order.device)
    return torch.empty_like(order).scatter_(0, order, positions)
