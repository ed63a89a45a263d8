"""The edges of a graph as a list, for models that compute a weight for every edge.

A list is prepared once per graph. After that, a forward pass neither waits for the device nor has
shapes that depend on values. Edges may be directed and may be repeated. On a GPU,
:mod:`nfgnn.kernels.edge_sums` computes the sums without a row of channels per edge. Under ``vmap``
the runs become heads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.autograd import Function
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_remaining_self_loops, remove_self_loops

from nfgnn.nn.kernel_choice import is_fused
from nfgnn.spectral import fast_apply, join_runs
from nfgnn.tensor_cache import TensorCache

T = TypeVar("T")
_CACHE = TensorCache()


class _Rows(NamedTuple):
    """The edges of every node: its entries are ``others[indptr[i]:indptr[i + 1]]``."""

    indptr: Tensor
    others: Tensor
    """The other ends of the edges."""
    edges: Tensor
    """The numbers of the edges in the list."""


@dataclass(frozen=True)
class EdgeList:
    """Edges from ``source`` to ``target``, of ``num_nodes`` nodes."""

    source: Tensor
    target: Tensor
    num_nodes: int

    @cached_property
    def by_target(self) -> _Rows:
        """The edges that end in every node."""
        return self._rows(self.target, self.source)

    @cached_property
    def by_source(self) -> _Rows:
        """The edges that start in every node."""
        return self._rows(self.source, self.target)

    def _rows(self, ends: Tensor, others: Tensor) -> _Rows:
        # The rows outlive the pass that asks for them first, so they must suit any mode.
        with torch.inference_mode(False), torch.no_grad():
            order = ends.argsort(stable=True)
            starts = torch.arange(self.num_nodes + 1, device=ends.device)
            indptr = torch.searchsorted(ends[order], starts)
            return _Rows(indptr, others[order].int(), order.int())

    def pair_sums(self, of_source: Tensor, of_target: Tensor) -> Tensor:
        """Return the sum of a value of the source and a value of the target, for every edge."""
        return of_source.index_select(0, self.source) + of_target.index_select(0, self.target)

    def weighted_sums(self, weight: Tensor, x: Tensor) -> Tensor:
        """Return the weighted sums over the sources of every node, ``[n, heads, channels]``.

        Args:
            weight: ``[edges, heads]``.
            x: ``[n, heads, channels]``.
        """
        if is_fused(x) and is_fused(weight) and not torch.compiler.is_compiling():
            out: Tensor = _WeightedSums.apply(weight, x, self)
            return out
        messages = weight[..., None] * x.index_select(0, self.source)
        # Under autocast, the weights may be float32 and x in half precision.
        return messages.new_zeros(x.shape).index_add(0, self.target, messages)


@fast_apply
class _WeightedSums(Function):
    @staticmethod
    def forward(weight: Tensor, x: Tensor, edges: EdgeList) -> Tensor:
        from nfgnn.kernels import edge_sums as kernel

        dtype = torch.promote_types(weight.dtype, x.dtype)
        return kernel.weighted_sums(*edges.by_target, weight.contiguous(), x.contiguous(), dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, EdgeList], output: Tensor) -> None:
        weight, x, ctx.edges = inputs
        ctx.save_for_backward(weight, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        return *_WeightedSumsGradient.apply(grad, *ctx.saved_tensors, ctx.edges), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        joined = join_runs(info.batch_size, in_dims[:2], inputs[:2], (1, 1))
        out = _WeightedSums.apply(*joined, inputs[2])
        return out.unflatten(1, (info.batch_size, -1)), 1


@fast_apply
class _WeightedSumsGradient(Function):
    @staticmethod
    def forward(grad: Tensor, weight: Tensor, x: Tensor, edges: EdgeList) -> tuple[Tensor, Tensor]:
        from nfgnn.kernels import edge_sums as kernel

        grad = grad.contiguous()
        d_weight = kernel.weight_gradient(*edges.by_target, grad, x.contiguous(), weight.dtype)
        d_x = kernel.weighted_sums(*edges.by_source, weight.contiguous(), grad, x.dtype)
        return d_weight, d_x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, int]]:
        joined = join_runs(info.batch_size, in_dims[:3], inputs[:3], (1, 1, 1))
        parts = _WeightedSumsGradient.apply(*joined, inputs[3])
        return tuple(part.unflatten(1, (info.batch_size, -1)) for part in parts), (1, 1)


def edges_with_self_loops(edge_index: Tensor, num_nodes: int) -> EdgeList:
    """Return the edges with one self-loop at every node, cached for the life of ``edge_index``."""
    if torch.compiler.is_compiling():
        # A compiler cannot trace the preparation, so it breaks the graph here.
        prepared: EdgeList = torch.compiler.disable(edges_with_self_loops)(edge_index, num_nodes)
        return prepared

    def make() -> EdgeList:
        with_loops, _ = add_remaining_self_loops(edge_index.long(), num_nodes=num_nodes)
        return EdgeList(with_loops[0], with_loops[1], num_nodes)

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
        return EdgeList(kept[0], kept[1], num_nodes), norm

    if edge_weight is not None and edge_weight.requires_grad and torch.is_grad_enabled():
        return make()
    options = (num_nodes, dtype)
    return _CACHE.lookup((edge_index, edge_weight), options, lambda: _as_constants(make))


def _as_constants(make: Callable[[], T]) -> T:
    """Return what ``make`` computes, as tensors that later passes may use in any mode."""
    with torch.inference_mode(False), torch.no_grad():
        return make()
