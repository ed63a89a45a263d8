r"""Operations on the values of edges: pair sums, softmax over neighbours, weighted sums.

Every edge and every node has a value, or a row of channels, per head. Two modules implement the
same functions without allocating a row of channels per edge:
:mod:`nfgnn.kernels.edge_operations` for a GPU, without atomic additions, and
:mod:`nfgnn.nn.sparse_edge_operations` for a CPU. ``torch.compile``, other devices, and types that
the GPU's kernels do not support use plain operations of torch. Under ``vmap`` the runs become
heads.
"""

from types import ModuleType
from typing import Any, TypeVar

import torch
import torch_geometric.utils
from torch import Tensor
from torch.autograd import Function

from nfgnn.nn import sparse_edge_operations
from nfgnn.nn.edge_list import EdgeList
from nfgnn.nn.kernel_choice import is_fused
from nfgnn.spectral import fast_apply, join_runs

F = TypeVar("F", bound=type[Function])


def pair_sums(of_source: Tensor, of_target: Tensor, edges: EdgeList) -> Tensor:
    """Return the sum of a value of the source and a value of the target of every edge.

    Args:
        of_source, of_target: ``[n, heads]``.
        edges: the edges.

    Returns:
        ``[edges, heads]``.
    """
    if _computes_by_rows(of_source, of_target):
        out: Tensor = _PairSums.apply(of_source, of_target, edges)
        return out
    return _pair_sums(of_source, of_target, edges)


def softmax(score: Tensor, edges: EdgeList) -> Tensor:
    """Return the softmax of scores over the edges that end in a node, ``[edges, heads]``."""
    if _computes_by_rows(score):
        out: Tensor = _Softmax.apply(score, edges)
        return out
    weight: Tensor = torch_geometric.utils.softmax(score, edges.target, num_nodes=edges.num_nodes)
    return weight


def weighted_sums(weight: Tensor, x: Tensor, edges: EdgeList) -> Tensor:
    """Return the weighted sums over the sources of every node, ``[n, heads, channels]``.

    Args:
        weight: ``[edges, heads]``.
        x: ``[n, heads, channels]``.
        edges: the edges.
    """
    if _computes_by_rows(weight, x):
        out: Tensor = _WeightedSums.apply(weight, x, edges)
        return out
    messages = weight[..., None] * x.index_select(0, edges.source)
    # Under autocast, the weights may be float32 and x in half precision.
    return messages.new_zeros(x.shape).index_add(0, edges.target, messages)


def _computes_by_rows(*tensors: Tensor) -> bool:
    """Return whether :func:`_row_operations` supports tensors."""
    if torch.compiler.is_compiling():
        return False
    return all(is_fused(x) for x in tensors) or all(x.is_cpu for x in tensors)


def _row_operations(*tensors: Tensor) -> ModuleType:
    """Return the module that computes with tensors from the edges of every node."""
    if not all(is_fused(x) for x in tensors):
        return sparse_edge_operations
    from nfgnn.kernels import edge_operations

    return edge_operations


def _pair_sums(of_source: Tensor, of_target: Tensor, edges: EdgeList) -> Tensor:
    return of_source.index_select(0, edges.source) + of_target.index_select(0, edges.target)


def _runs_as_heads(function: F) -> F:
    """Class decorator: let the runs of a ``vmap`` become heads of an autograd function.

    Its arguments are tensors, whose second dimension counts heads, followed by the edges. Its
    results are tensors of this kind.
    """
    apply: Any = function

    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        *tensors, edges = inputs
        heads = (1,) * len(tensors)
        joined = join_runs(info.batch_size, in_dims[:-1], tuple(tensors), heads)
        parts = apply.apply(*joined, edges)
        if isinstance(parts, Tensor):
            return parts.unflatten(1, (info.batch_size, -1)), 1
        separate = tuple(part.unflatten(1, (info.batch_size, -1)) for part in parts)
        return separate, (1,) * len(separate)

    apply.vmap = staticmethod(vmap)
    return fast_apply(function)


@_runs_as_heads
class _PairSums(Function):
    @staticmethod
    def forward(of_source: Tensor, of_target: Tensor, edges: EdgeList) -> Tensor:
        return _pair_sums(of_source, of_target, edges)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, EdgeList], output: Tensor) -> None:
        ctx.edges = inputs[2]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        return *_PairSumsGradient.apply(grad, ctx.edges), None


@_runs_as_heads
class _PairSumsGradient(Function):
    @staticmethod
    def forward(grad: Tensor, edges: EdgeList) -> tuple[Tensor, Tensor]:
        operations = _row_operations(grad)
        grad = grad.contiguous()
        sums = []
        for rows in (edges.by_source, edges.by_target):
            sums.append(operations.edge_sums(rows.indptr, rows.edges, grad))
        return sums[0], sums[1]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, EdgeList], output: Any) -> None:
        ctx.edges = inputs[1]

    @staticmethod
    def backward(ctx: Any, d_source: Tensor, d_target: Tensor) -> tuple[Tensor, None]:
        return _PairSums.apply(d_source, d_target, ctx.edges), None


@_runs_as_heads
class _Softmax(Function):
    @staticmethod
    def forward(score: Tensor, edges: EdgeList) -> Tensor:
        rows = edges.by_target
        out: Tensor = _row_operations(score).softmax(rows.indptr, rows.edges, score.contiguous())
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, EdgeList], output: Tensor) -> None:
        ctx.edges = inputs[1]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _SoftmaxGradient.apply(grad, *ctx.saved_tensors, ctx.edges), None


@_runs_as_heads
class _SoftmaxGradient(Function):
    @staticmethod
    def forward(grad: Tensor, weight: Tensor, edges: EdgeList) -> Tensor:
        rows = edges.by_target
        tensors = (grad.contiguous(), weight.contiguous())
        operations = _row_operations(*tensors)
        out: Tensor = operations.softmax_gradient(rows.indptr, rows.edges, *tensors)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, EdgeList], output: Tensor) -> None:
        grad, weight, ctx.edges = inputs
        ctx.save_for_backward(grad, weight)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, Tensor, None]:
        grad, weight = ctx.saved_tensors
        # Of weight * (grad - along), with along the sum of weight * grad over the edges of a node.
        along = _sums_at_target(weight * grad, ctx.edges)
        d_weight = outer * (grad - along) - grad * _sums_at_target(weight * outer, ctx.edges)
        # The derivative of a softmax is symmetric.
        return _SoftmaxGradient.apply(outer, weight, ctx.edges), d_weight, None


def _sums_at_target(value: Tensor, edges: EdgeList) -> Tensor:
    """Return for every edge the sum over all edges with the same target."""
    total = value.new_zeros(edges.num_nodes, value.shape[1]).index_add(0, edges.target, value)
    return total.index_select(0, edges.target)


@_runs_as_heads
class _WeightedSums(Function):
    @staticmethod
    def forward(weight: Tensor, x: Tensor, edges: EdgeList) -> Tensor:
        dtype = torch.promote_types(weight.dtype, x.dtype)
        tensors = (weight.contiguous(), x.contiguous())
        operations = _row_operations(*tensors)
        out: Tensor = operations.weighted_sums(*edges.by_target, *tensors, dtype)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, EdgeList], output: Tensor) -> None:
        weight, x, ctx.edges = inputs
        ctx.save_for_backward(weight, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        weight, x = ctx.saved_tensors
        d_weight = _EdgeProducts.apply(grad, x, ctx.edges)
        d_x = _WeightedSums.apply(weight, grad, ctx.edges.reversed)
        return d_weight.to(weight.dtype), d_x.to(x.dtype), None


@_runs_as_heads
class _EdgeProducts(Function):
    """The inner products of a row of the target and a row of the source of every edge."""

    @staticmethod
    def forward(of_target: Tensor, of_source: Tensor, edges: EdgeList) -> Tensor:
        dtype = torch.promote_types(of_target.dtype, of_source.dtype)
        tensors = (of_target.contiguous(), of_source.contiguous())
        operations = _row_operations(*tensors)
        out: Tensor = operations.edge_products(*edges.by_target, *tensors, dtype)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, EdgeList], output: Tensor) -> None:
        of_target, of_source, ctx.edges = inputs
        ctx.save_for_backward(of_target, of_source)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        of_target, of_source = ctx.saved_tensors
        d_target = _WeightedSums.apply(grad, of_source, ctx.edges)
        d_source = _WeightedSums.apply(grad, of_target, ctx.edges.reversed)
        return d_target.to(of_target.dtype), d_source.to(of_source.dtype), None
