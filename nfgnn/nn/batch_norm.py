"""Batch normalisation over the nodes of a graph, for one run and for many at once.

It takes the place of LayerNorm in a residual block (:mod:`nfgnn.nn.residual_block`). Torch computes
it on both devices. Many runs at once are the channels of one normalisation.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from nfgnn.nn.kernel_choice import is_fused
from nfgnn.nn.residual_block import EPSILON
from nfgnn.nn.vmap_runs import join_inputs, separate_runs
from nfgnn.spectral import fast_apply

MOMENTUM = 0.1  # of running statistics


class RunningStatistics(nn.Module):
    """Running mean and variance of every channel, as in :class:`torch.nn.BatchNorm1d`.

    Args:
        channels: number of channels.
    """

    mean: Tensor
    var: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("var", torch.ones(channels))

    def reset(self) -> None:
        """Reset the running statistics."""
        self.mean.zero_()
        self.var.fill_(1)

    @torch.no_grad()
    def update(self, mean: Tensor, var: Tensor, num_nodes: int) -> None:
        """Add the statistics of one pass, in place.

        Args:
            mean, var: over the nodes of the pass; the variance is the biased one.
            num_nodes: number of nodes of the pass.
        """
        unbiased = num_nodes / max(1, num_nodes - 1)
        self.mean.mul_(1 - MOMENTUM).add_(mean.detach(), alpha=MOMENTUM)
        self.var.mul_(1 - MOMENTUM).add_(var.detach(), alpha=MOMENTUM * unbiased)


def batch_norm(
    h: Tensor, gamma: Tensor, beta: Tensor, statistics: RunningStatistics, training: bool
) -> Tensor:
    """Return the batch normalisation of h over the nodes, in the precision of the weights.

    Args:
        h: ``[n, width]``, float32.
        gamma, beta: scale and shift, ``[width]``.
        statistics: what evaluation normalises with. Training updates it.
        training: whether to normalise with the statistics of h itself.
    """
    if not training:
        scale = torch.rsqrt(statistics.var + EPSILON) * gamma
        return torch.addcmul(beta - statistics.mean * scale, h, scale).to(gamma.dtype)
    if is_fused(h):
        out, mean, inverse = _BatchNorm.apply(h[:, None], gamma[None], beta[None])
        statistics.update(mean[0], inverse[0] ** -2 - EPSILON, h.shape[0])
        y: Tensor = out.squeeze(1).to(gamma.dtype)
        return y
    var, mean = torch.var_mean(h, 0, correction=0)
    statistics.update(mean, var, h.shape[0])
    normed = ((h - mean) * torch.rsqrt(var + EPSILON)).to(gamma.dtype)
    return normed * gamma + beta


@fast_apply
class _BatchNorm(Function):
    """Batch normalisation of ``[n, runs, width]``, with mean and inverse standard deviation."""

    @staticmethod
    def forward(h: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, mean, inverse = torch.native_batch_norm(
            h.flatten(1), _as_channels(gamma), _as_channels(beta), None, None, True, 0.0, EPSILON
        )
        return y.view(h.shape), mean.view(h.shape[1:]), inverse.view(h.shape[1:])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        h, gamma, _ = inputs
        _, mean, inverse = output
        ctx.save_for_backward(h, gamma, mean, inverse)
        ctx.mark_non_differentiable(mean, inverse)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor, ...]:
        gradients: tuple[Tensor, ...] = _BatchNormGradient.apply(grad, *ctx.saved_tensors)
        return gradients

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        batch = info.batch_size
        joined = join_inputs(batch, in_dims, inputs, (1, 0, 0))
        return separate_runs(_BatchNorm.apply(*joined), batch, (1, 0, 0)), (1, 0, 0)


@fast_apply
class _BatchNormGradient(Function):
    @staticmethod
    def forward(
        grad: Tensor, h: Tensor, gamma: Tensor, mean: Tensor, inverse: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        d_h, d_gamma, d_beta = torch.ops.aten.native_batch_norm_backward(
            grad.flatten(1), h.flatten(1), _as_channels(gamma), None, None,
            mean.flatten(), inverse.flatten(), True, EPSILON, [True, True, True],
        )  # fmt: skip
        d_gamma = d_gamma.view(gamma.shape).to(gamma.dtype)
        return d_h.view(h.shape), d_gamma, d_beta.view(gamma.shape).to(gamma.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        batch = info.batch_size
        joined = join_inputs(batch, in_dims, inputs, (1, 1, 0, 0, 0))
        return separate_runs(_BatchNormGradient.apply(*joined), batch, (1, 0, 0)), (1, 0, 0)


def _as_channels(parameter: Tensor) -> Tensor:
    """Return ``[runs, width]`` as the channels of one batch normalisation in float32."""
    return parameter.float().flatten()
