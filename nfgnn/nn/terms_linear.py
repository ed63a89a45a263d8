r"""The linear map of several terms, :math:`\sum_k T_k W_k`, for one run and for many at once."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.nn.kernel_choice import autocast_dtype, is_fused
from nfgnn.nn.vmap_runs import join_inputs, separate_runs
from nfgnn.spectral import fast_apply


def linear(terms: Sequence[Tensor], weight: Tensor, constant: bool = False) -> Tensor:
    r"""Return :math:`\sum_k T_k W_k`, ``[n, out_channels]``, in half precision under autocast.

    Args:
        terms: K + 1 matrices ``[n, in_channels]``.
        weight: ``[K + 1, in_channels, out_channels]``.
        constant: whether the terms have no gradient.
    """
    half = autocast_dtype(terms[0])
    if half is not None:
        # Kernels do not take part in autocast.
        terms = [term.to(half) for term in terms]
        weight = weight.to(half)
    if is_fused(terms[0]):
        out: Tensor = _Linear.apply(constant, weight[None], *(term[:, None] for term in terms))
        return out.squeeze(1)
    products = [term @ own for term, own in zip(terms, weight.unbind(0), strict=True)]
    total = products[0]
    for product in products[1:]:
        total = total + product
    return total


def multiply_terms(terms: Sequence[Tensor], weight: Tensor) -> Tensor:
    r"""Return :math:`\sum_k T_k W_k` of many runs, ``[n, runs, out_channels]``, without autograd.

    Args:
        terms: K + 1 tensors ``[n, runs, in_channels]``.
        weight: ``[runs, K + 1, in_channels, out_channels]``.
    """
    first, *others = terms
    out = first.new_empty(*first.shape[:2], weight.shape[-1])
    # Products write to the layout [n, runs, width] through a view.
    by_run = out.transpose(0, 1)
    torch.bmm(first.transpose(0, 1), weight[:, 0], out=by_run)
    for k, term in enumerate(others, start=1):
        torch.baddbmm(by_run, term.transpose(0, 1), weight[:, k], out=by_run)
    return out


@fast_apply
class _Linear(Function):
    """Σ_k T_k W_k for weights ``[runs, K + 1, in, out]`` and terms ``[n, runs, in]``."""

    @staticmethod
    def forward(constant: bool, weight: Tensor, *terms: Tensor) -> Tensor:
        return multiply_terms(terms, weight)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.constant, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, *terms = ctx.saved_tensors
        d_weight, *d_terms = _LinearGradient.apply(ctx.constant, grad, weight, *terms)
        if ctx.constant:
            return None, d_weight, *[None] * len(terms)
        return None, d_weight, *d_terms

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], constant: bool, *inputs: Tensor
    ) -> tuple[Tensor, int]:
        batch = info.batch_size
        joined = join_inputs(batch, in_dims[1:], inputs, (0, *[1] * (len(inputs) - 1)))
        return separate_runs([_Linear.apply(constant, *joined)], batch, (1,))[0], 1


@fast_apply
class _LinearGradient(Function):
    @staticmethod
    def forward(constant: bool, grad: Tensor, weight: Tensor, *terms: Tensor) -> tuple[Tensor, ...]:
        from nfgnn.kernels import residual_block as kernel

        grad = grad.contiguous()
        d_weight = kernel.weight_gradient(grad, terms, weight.dtype)
        if constant:
            return (d_weight,)
        by_run = grad.transpose(0, 1)
        d_terms = []
        for k, term in enumerate(terms):
            d_term = torch.empty(term.shape, dtype=term.dtype, device=term.device)
            torch.bmm(by_run, weight[:, k].mT, out=d_term.transpose(0, 1))
            d_terms.append(d_term)
        return d_weight, *d_terms

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], constant: bool, *inputs: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        batch = info.batch_size
        run_dims = (1, 0, *[1] * (len(inputs) - 2))
        joined = join_inputs(batch, in_dims[1:], inputs, run_dims)
        parts = _LinearGradient.apply(constant, *joined)
        out_dims = run_dims[1 : len(parts) + 1]
        return separate_runs(parts, batch, out_dims), out_dims
