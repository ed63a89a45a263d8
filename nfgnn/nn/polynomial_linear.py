r"""A polynomial of a sparse matrix with a weight matrix for every order, as one operation.

.. math:: Z = \sum_k X_k W_k, \qquad X_0 = X, \qquad X_{k+1} = a_k S X_k + b_k X_k + c_k X_{k-1}

The backward pass is the same recurrence with the transpose of S. Every product is added to the
gradient that it belongs to, where autograd would store both and add them up afterwards.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.nn.terms_linear import multiply_terms
from nfgnn.nn.vmap_runs import join_inputs, separate_runs
from nfgnn.spectral import CSR, Table, fast_apply


def polynomial_linear(x: Tensor, weight: Tensor, matrix: CSR, table: Table) -> Tensor:
    r"""Return :math:`\sum_k X_k W_k`, ``[n, out_channels]``, computed by the GPU's kernels.

    Args:
        x: ``[n, in_channels]``.
        weight: ``[K + 1, in_channels, out_channels]``.
        matrix: S, which has no gradient.
        table: a, b and c of every step; K of them.
    """
    out: Tensor = _PolynomialLinear.apply(x[:, None], weight[None], matrix, table)[0]
    return out.squeeze(1)


def _step(matrix: CSR, x: Tensor, a: float, b: float, previous: Tensor | None, c: float) -> Tensor:
    """Return a S x + b x + c · previous for ``[n, runs, width]``."""
    from nfgnn.kernels import recurrence as kernel

    older = None if previous is None else previous.flatten(1)
    return kernel.matrix_step(matrix, x.flatten(1), a, b, older, c).view(x.shape)


@fast_apply
class _PolynomialLinear(Function):
    """Z and the terms X_1 … X_K, for x ``[n, runs, in]`` and weights ``[runs, K + 1, in, out]``."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, matrix: CSR, table: Table) -> tuple[Tensor, ...]:
        terms = [x.contiguous()]
        for a, b, c in table:
            previous = terms[-2] if c else None
            terms.append(_step(matrix, terms[-1], a, b, previous, c))
        return multiply_terms(terms, weight), *terms[1:]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, weight, ctx.matrix, ctx.table = inputs
        ctx.save_for_backward(weight, x, *output[1:])
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        d_x, d_weight = _PolynomialLinearGradient.apply(
            ctx.matrix, ctx.table, grad, *ctx.saved_tensors
        )
        return d_x, d_weight, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], x: Tensor, weight: Tensor, *graph: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        joined = join_inputs(info.batch_size, in_dims[:2], (x, weight), (1, 0))
        parts = _PolynomialLinear.apply(*joined, *graph)
        run_dims = (1,) * len(parts)
        return separate_runs(parts, info.batch_size, run_dims), run_dims


@fast_apply
class _PolynomialLinearGradient(Function):
    """The gradients S_0 for x, with S_k = G W_kᵀ + a_k Sᵀ S_{k+1} + …, and X_kᵀ G for W_k."""

    @staticmethod
    def forward(
        matrix: CSR, table: Table, grad: Tensor, weight: Tensor, *terms: Tensor
    ) -> tuple[Tensor, Tensor]:
        from nfgnn.kernels import residual_block as kernel

        grad = grad.contiguous()
        by_run = grad.transpose(0, 1)
        d_weight = kernel.weight_gradient(grad, terms, weight.dtype)
        K = len(table)
        older: Tensor | None = None
        newer = torch.empty_like(terms[0], memory_format=torch.contiguous_format)
        torch.bmm(by_run, weight[:, K].mT, out=newer.transpose(0, 1))
        for k in range(K - 1, -1, -1):
            a, b, _ = table[k]
            c = table[k + 1][2] if k + 1 < K else 0.0
            newest = _step(matrix.transpose, newer, a, b, older if c else None, c)
            own = newest.transpose(0, 1)
            torch.baddbmm(own, by_run, weight[:, k].mT, out=own)
            older, newer = newer, newest
        return newer, d_weight

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], matrix: CSR, table: Table, *inputs: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        run_dims = (1, 0, *[1] * (len(inputs) - 2))
        joined = join_inputs(info.batch_size, in_dims[2:], inputs, run_dims)
        parts = _PolynomialLinearGradient.apply(matrix, table, *joined)
        return separate_runs(parts, info.batch_size, (1, 0)), (1, 0)
