r"""The row-wise operations of a residual block, for one run and for many at once.

.. math::
    u = \sum_k T_k W_k, \qquad v = \mathrm{drop}\big(\mathrm{gelu}(u + b)\big), \qquad
    h' = h + \mathrm{drop}(v W + b'), \qquad y = \mathrm{LayerNorm}(h')

h is at least float32, everything else has the precision of the weights. On a GPU, the row-wise
operations are one kernel each (:mod:`nfgnn.kernels.residual_block`); elsewhere they are plain
torch. Under ``vmap`` the tensors of nodes are ``[n, runs, width]`` in memory, which is also the
layout of a sparse product over the columns of all runs, so the operations copy nothing.

:mod:`nfgnn.nn.terms_linear` computes u. In place of LayerNorm, a network may have batch
normalisation (:mod:`nfgnn.nn.batch_norm`).
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from nfgnn.nn.dropout import Rate, dropout_dense
from nfgnn.nn.kernel_choice import is_fused
from nfgnn.nn.vmap_runs import join_inputs, separate_runs
from nfgnn.spectral import fast_apply

EPSILON = 1e-5  # of LayerNorm and of batch normalisation


@dataclass(frozen=True)
class DropoutStream:
    """The random numbers of one pass: every dropout layer of the network has its own number.

    One seed is drawn per pass. In evaluation, and at rate 0, there is none.
    """

    rate: Rate
    rates: Tensor | None
    seeds: Tensor | None

    @classmethod
    def start(cls, rate: Rate, training: bool, device: torch.device) -> "DropoutStream":
        """Draw the seed of a pass.

        Args:
            rate: dropout rate.
            training: whether to drop anything.
            device: device of the tensors.
        """
        if not training or (not isinstance(rate, Tensor) and rate == 0):
            return cls(0.0, None, None)
        if device.type != "cuda":
            return cls(rate, None, None)
        rates = rate[None] if isinstance(rate, Tensor) else torch.full((1,), rate, device=device)
        return cls(rate, rates, torch.randint(2**62, (1,), device=device))


def activate(u: Tensor, bias: Tensor, dropout: DropoutStream, number: int) -> Tensor:
    """Return drop(gelu(u + bias)).

    Args:
        u: ``[n, width]``.
        bias: ``[width]``.
        dropout: the random numbers of the pass.
        number: index of this dropout layer in the network.
    """
    if is_fused(u):
        out: Tensor = _Activate.apply(u[:, None], bias[None], *_drawn(dropout), number)
        return out.squeeze(1)
    return dropout_dense(F.gelu(u + bias), dropout.rate, True)


def layer_norm(h: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """Return the LayerNorm of the residual stream, in the precision of scale and shift.

    Args:
        h: the residual stream ``[n, width]``, float32.
        gamma, beta: scale and shift, ``[width]``.
    """
    if is_fused(h):
        scale_and_shift = (gamma[None], beta[None])
        _, y = _ResidualNorm.apply(h[:, None], None, None, *scale_and_shift, None, None, 0)
        out: Tensor = y.squeeze(1)
        return out
    normed = F.layer_norm(h, h.shape[-1:], eps=EPSILON).to(gamma.dtype)
    return normed * gamma + beta


def residual_norm(
    h: Tensor,
    branch: Tensor,
    bias: Tensor,
    gamma: Tensor,
    beta: Tensor,
    dropout: DropoutStream,
    number: int,
) -> tuple[Tensor, Tensor]:
    """Return h + drop(branch + bias) and its LayerNorm.

    Args:
        h: the residual stream ``[n, width]``, float32.
        branch: ``[n, width]``.
        bias: ``[width]``.
        gamma, beta: scale and shift of the LayerNorm, ``[width]``.
        dropout: the random numbers of the pass.
        number: index of this dropout layer in the network.
    """
    if is_fused(h):
        out, y = _ResidualNorm.apply(
            h[:, None],
            branch[:, None],
            bias[None],
            gamma[None],
            beta[None],
            *_drawn(dropout),
            number,
        )
        return out.squeeze(1), y.squeeze(1)
    h = _added(h, branch, bias, dropout)
    return h, layer_norm(h, gamma, beta)


def residual_add(
    h: Tensor, branch: Tensor, bias: Tensor | None, dropout: DropoutStream, number: int
) -> Tensor:
    """Return h + drop(branch + bias). The arguments are those of :func:`residual_norm`."""
    if is_fused(h):
        # The kernel also computes a LayerNorm, which is faster than separate operations. It needs a
        # bias.
        zeros = branch.new_zeros(branch.shape[-1])
        own_bias = zeros if bias is None else bias
        return residual_norm(h, branch, own_bias, zeros, zeros, dropout, number)[0]
    return _added(h, branch, bias, dropout)


def _added(h: Tensor, branch: Tensor, bias: Tensor | None, dropout: DropoutStream) -> Tensor:
    added = branch if bias is None else branch + bias
    return h + dropout_dense(added, dropout.rate, True)


def _drawn(dropout: DropoutStream) -> tuple[Tensor | None, Tensor | None]:
    return dropout.rates, dropout.seeds


@fast_apply
class _Activate(Function):
    @staticmethod
    def forward(
        u: Tensor, bias: Tensor, rates: Tensor | None, seeds: Tensor | None, number: int
    ) -> Tensor:
        from nfgnn.kernels import residual_block as kernel

        return kernel.activate(u.contiguous(), bias, rates, seeds, number)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        u, bias, rates, seeds, ctx.number = inputs
        ctx.save_for_backward(u, bias, rates, seeds)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        d_u, d_bias = _ActivateGradient.apply(grad, *ctx.saved_tensors, ctx.number)
        return d_u, d_bias, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        batch = info.batch_size
        joined = join_inputs(batch, in_dims[:4], inputs[:4], (1, 0, 0, 0))
        return separate_runs([_Activate.apply(*joined, inputs[4])], batch, (1,))[0], 1


@fast_apply
class _ActivateGradient(Function):
    @staticmethod
    def forward(
        grad: Tensor,
        u: Tensor,
        bias: Tensor,
        rates: Tensor | None,
        seeds: Tensor | None,
        number: int,
    ) -> tuple[Tensor, Tensor]:
        from nfgnn.kernels import residual_block as kernel

        return kernel.activate_gradient(
            grad.contiguous(), u.contiguous(), bias, rates, seeds, number
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        batch = info.batch_size
        joined = join_inputs(batch, in_dims[:5], inputs[:5], (1, 1, 0, 0, 0))
        parts = _ActivateGradient.apply(*joined, inputs[5])
        return separate_runs(parts, batch, (1, 0)), (1, 0)


@fast_apply
class _ResidualNorm(Function):
    """h + drop(branch + bias), and its LayerNorm. The first is empty if there is no branch."""

    @staticmethod
    def forward(
        h: Tensor,
        branch: Tensor | None,
        bias: Tensor | None,
        gamma: Tensor,
        beta: Tensor,
        rates: Tensor | None,
        seeds: Tensor | None,
        number: int,
    ) -> tuple[Tensor, Tensor]:
        from nfgnn.kernels import residual_block as kernel

        own = None if branch is None else branch.contiguous()
        out, y = kernel.residual_norm(
            h.contiguous(), own, bias, rates, seeds, number, gamma, beta, EPSILON
        )
        # Without a branch there is nothing to add. An input must not be returned as it is.
        return (out.new_empty(0, h.shape[1]) if own is None else out), y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        h, branch, _, gamma, _, rates, seeds, ctx.number = inputs
        ctx.has_branch = branch is not None
        ctx.save_for_backward(output[0] if ctx.has_branch else h, gamma, rates, seeds)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor | None, d_y: Tensor | None) -> tuple[Tensor | None, ...]:
        out, gamma, rates, seeds = ctx.saved_tensors
        if d_y is None:
            d_y = torch.zeros_like(out, dtype=gamma.dtype)
        if not ctx.has_branch:
            d_out = None
        d_h, d_branch, sums = _ResidualNormGradient.apply(
            d_out, d_y, out, gamma, rates, seeds, ctx.number, ctx.has_branch
        )
        d_gamma, d_beta, d_bias = sums.unbind(0)
        if not ctx.has_branch:
            return d_h, None, None, d_gamma, d_beta, None, None, None
        return d_h, d_branch, d_bias, d_gamma, d_beta, None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        batch = info.batch_size
        joined = join_inputs(batch, in_dims[:7], inputs[:7], (1, 1, 0, 0, 0, 0, 0))
        parts = _ResidualNorm.apply(*joined, inputs[7])
        return separate_runs(parts, batch, (1, 1)), (1, 1)


@fast_apply
class _ResidualNormGradient(Function):
    @staticmethod
    def forward(
        d_out: Tensor | None,
        d_y: Tensor,
        out: Tensor,
        gamma: Tensor,
        rates: Tensor | None,
        seeds: Tensor | None,
        number: int,
        has_branch: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        from nfgnn.kernels import residual_block as kernel

        d_h, d_branch, sums = kernel.residual_norm_gradient(
            None if d_out is None else d_out.contiguous(),
            d_y.contiguous(),
            out.contiguous(),
            rates,
            seeds,
            number,
            gamma,
            has_branch,
            EPSILON,
        )
        return d_h, d_branch if has_branch else d_h.new_empty(0, d_h.shape[1]), sums

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        batch = info.batch_size
        joined = join_inputs(batch, in_dims[:6], inputs[:6], (1, 1, 1, 0, 0, 0))
        parts = _ResidualNormGradient.apply(*joined, *inputs[6:])
        return separate_runs(parts, batch, (1, 1, 1)), (1, 1, 1)
