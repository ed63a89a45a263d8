"""Dropout for dense and sparse inputs, for one run and for many at once."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from nfgnn.nn.features import Features, as_csr, is_dense
from nfgnn.spectral import fast_apply, transforming

Rate = float | Tensor
"""A dropout rate: a number, or under ``vmap`` a scalar tensor that may differ between runs."""


def dropout(x: Features, p: Rate, training: bool) -> Features:
    """Apply dropout. In a sparse matrix only the stored values are dropped, the others are zero."""
    if not training or _is_zero(p):
        return x
    if is_dense(x):
        return dropout_dense(x, p, training)
    matrix = as_csr(x)
    return matrix.with_values(dropout_dense(matrix.values, p, training))


def dropout_dense(x: Tensor, p: Rate, training: bool) -> Tensor:
    """Apply dropout to a dense tensor."""
    if not training or _is_zero(p):
        return x
    if torch.compiler.is_compiling() and not isinstance(p, Tensor):
        # A compiler fuses this one with the operations around it.
        return F.dropout(x, p)
    if not isinstance(p, Tensor) and p >= 1:
        return x * 0.0  # The factor 1/(1 - p) does not exist.
    # Features have no gradient, so the bookkeeping of autograd is skipped.
    if not x.requires_grad and not transforming():
        if x.is_cuda:
            return _Dropout.forward(x, p)[0]
        # In place, because new memory for large features takes longer than the product.
        return _random_factor(x, p).mul_(x)
    dropped: Tensor = _Dropout.apply(x, p)[0]
    return dropped


def _is_zero(p: Rate) -> bool:
    # A tensor is not compared: that would wait for the device, and vmap forbids it.
    return not isinstance(p, Tensor) and p == 0


@fast_apply
class _Dropout(Function):
    """x times a random factor that is 0 with probability p and 1/(1 - p) otherwise.

    The second output is what the backward pass needs: the factors, or a mask.
    """

    @staticmethod
    def forward(x: Tensor, p: Rate) -> tuple[Tensor, Tensor]:
        if x.is_cuda and not isinstance(p, Tensor):
            return torch.native_dropout(x, p, True)  # a single kernel
        factor = _random_factor(x, p)
        return x * factor, factor

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Rate], output: tuple[Tensor, Tensor]) -> None:
        ctx.p = inputs[1]
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None]:
        (factor,) = ctx.saved_tensors
        if factor.dtype == torch.bool:  # the mask of native_dropout
            return torch.ops.aten.native_dropout_backward(grad, factor, 1 / (1 - ctx.p)), None
        return grad * factor, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, int | None], x: Tensor, p: Rate
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        """Draw factors for every run, in the layout that x already has."""
        dim = in_dims[0]
        if dim is None:
            dim = 0
            x = x.expand(info.batch_size, *x.shape)
        if isinstance(p, Tensor):
            shape = [1] * x.dim()
            shape[dim] = -1
            p = p.expand(info.batch_size).view(shape)
        return _Dropout.apply(x, p), (dim, dim)


def _random_factor(x: Tensor, p: Rate) -> Tensor:
    if x.is_cuda or isinstance(p, Tensor):
        kept = (torch.rand(x.shape, device=x.device) >= p).to(x.dtype)
    else:
        # Four draws of 16 bits from every random number of 64 bits, which is several times faster
        # than one draw per element.
        bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        draws = bits.view(torch.int16)[: x.numel()].view(x.shape)
        # The threshold of a rate close to 1 would exceed 16 bits.
        threshold = min(round(p * 2**16), 2**16 - 1) - 2**15
        kept = torch.ge(draws, threshold, out=torch.empty(x.shape, dtype=x.dtype))
    return kept.mul_(1 / (1 - p))
