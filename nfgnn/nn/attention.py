r"""Graph attention: a weighted mean over the neighbours of a node, for one run and for many.

.. math:: Z_i = \sum_{j ∈ N(i)} α_{ij} V_j, \qquad
          α_{ij} = \mathrm{softmax}_j\big(\mathrm{LeakyReLU}(t_i + s_j)\big)

for every head. On a GPU, :mod:`nfgnn.kernels.attention` computes it without storing a weight per
edge; other devices store one (:mod:`nfgnn.nn.edge_operations`). Under ``vmap`` the runs become
heads.
"""

from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from nfgnn.nn.edge_list import edges_of_matrix
from nfgnn.nn.edge_operations import pair_sums, softmax, weighted_sums
from nfgnn.nn.kernel_choice import is_fused
from nfgnn.spectral import CSR, fast_apply, join_runs

SLOPE = 0.2


def attend(source: Tensor, target: Tensor, values: Tensor, graph: CSR) -> Tensor:
    """Return the weighted means over neighbours, ``[n, heads, channels]``.

    Args:
        source: s, the scores of a node as a neighbour, ``[n, heads]``.
        target: t, the scores of a node whose neighbours are averaged, ``[n, heads]``.
        values: V, ``[n, heads, channels]``.
        graph: a matrix of symmetric pattern; its values are not used.
    """
    if is_fused(values):
        out: Tensor = _Attention.apply(source, target, values, graph)[0]
        return out
    edges = edges_of_matrix(graph)
    weight = softmax(F.leaky_relu(pair_sums(source, target, edges), SLOPE), edges)
    # Under autocast, the weights may be float32 and the values in half precision.
    return weighted_sums(weight, values, edges).to(values.dtype)


@fast_apply
class _Attention(Function):
    """The means, and the logarithms of the sums of weights, which the backward pass reads."""

    @staticmethod
    def forward(
        source: Tensor, target: Tensor, values: Tensor, graph: CSR
    ) -> tuple[Tensor, Tensor]:
        from nfgnn.kernels import attention as kernel

        tensors = (source.contiguous(), target.contiguous(), values.contiguous())
        return kernel.attend(graph.indptr, graph.indices, *tensors, SLOPE)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.graph = inputs
        ctx.save_for_backward(*tensors, *output)
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        return *_AttentionGradient.apply(grad, *ctx.saved_tensors, ctx.graph), None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        joined = join_runs(info.batch_size, in_dims[:3], inputs[:3], (1, 1, 1))
        parts = _Attention.apply(*joined, inputs[3])
        return tuple(part.unflatten(1, (info.batch_size, -1)) for part in parts), (1, 1)


@fast_apply
class _AttentionGradient(Function):
    @staticmethod
    def forward(
        grad: Tensor,
        source: Tensor,
        target: Tensor,
        values: Tensor,
        out: Tensor,
        norm: Tensor,
        graph: CSR,
    ) -> tuple[Tensor, Tensor, Tensor]:
        from nfgnn.kernels import attention as kernel

        return kernel.attend_gradient(
            grad.contiguous(),
            graph.indptr,
            graph.indices,
            source.contiguous(),
            target.contiguous(),
            values.contiguous(),
            out.contiguous(),
            norm.contiguous(),
            SLOPE,
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        joined = join_runs(info.batch_size, in_dims[:6], inputs[:6], (1,) * 6)
        parts = _AttentionGradient.apply(*joined, inputs[6])
        return tuple(part.unflatten(1, (info.batch_size, -1)) for part in parts), (1, 1, 1)
