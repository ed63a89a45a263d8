"""The edges of a graph as a list, for models that compute a weight for every edge.

A list is prepared once per graph. After that, a forward pass neither waits for the device nor has
shapes that depend on values. Edges may be directed and may be repeated.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_remaining_self_loops, remove_self_loops

from nfgnn.tensor_cache import TensorCache

T = TypeVar("T")
_CACHE = TensorCache()


class EdgeList(NamedTuple):
    """Edges from ``source`` to ``target``."""

    source: Tensor
    target: Tensor

    def pair_sums(self, of_source: Tensor, of_target: Tensor) -> Tensor:
        """Return the sum of a value of the source and a value of the target, for every edge."""
        return of_source.index_select(0, self.source) + of_target.index_select(0, self.target)

    def weighted_sums(self, weight: Tensor, x: Tensor) -> Tensor:
        """Return the weighted sums over the sources of every node.

        Args:
            weight: ``[edges, …]``.
            x: ``[n, …, channels]``.
        """
        messages = weight[..., None] * x.index_select(0, self.source)
        # Under autocast, the weights may be float32 and x in half precision.
        return messages.new_zeros(x.shape).index_add(0, self.target, messages)


def edges_with_self_loops(edge_index: Tensor, num_nodes: int) -> EdgeList:
    """Return the edges with one self-loop at every node, cached for the life of ``edge_index``."""
    if torch.compiler.is_compiling():
        # A compiler cannot trace the preparation, so it breaks the graph here.
        prepared: EdgeList = torch.compiler.disable(edges_with_self_loops)(edge_index, num_nodes)
        return prepared

    def make() -> EdgeList:
        with_loops, _ = add_remaining_self_loops(edge_index.long(), num_nodes=num_nodes)
        return EdgeList(*with_loops)

    return _CACHE.lookup((edge_index,), num_nodes, lambda: _as_constants(make))


def normalised_edges(
    edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int, dtype: torch.dtype
) -> tuple[EdgeList, Tensor]:
    r"""Return the edges without self-loops, and :math:`w_{ij} / \sqrt{d_i d_j}` of every edge.

    Both are cached for the life of the tensors, unless the weights require a gradient.
    """
    if torch.compiler.is_compiling():
        prepared: tuple[EdgeList, Tensor] = torch.compiler.disable(normalised_edges)(
            edge_index, edge_weight, num_nodes, dtype
        )
        return prepared

    def make() -> tuple[EdgeList, Tensor]:
        weight = None if edge_weight is None else edge_weight.to(dtype)
        kept, weight = remove_self_loops(edge_index.long(), weight)
        kept, norm = gcn_norm(kept, weight, num_nodes, add_self_loops=False, dtype=dtype)
        return EdgeList(*kept), norm

    if edge_weight is not None and edge_weight.requires_grad and torch.is_grad_enabled():
        return make()
    options = (num_nodes, dtype)
    return _CACHE.lookup((edge_index, edge_weight), options, lambda: _as_constants(make))


def _as_constants(make: Callable[[], T]) -> T:
    """Return what ``make`` computes, as tensors that later passes may use in any mode."""
    with torch.inference_mode(False), torch.no_grad():
        return make()
