r"""The passes of a two-layer MLP in training and in evaluation, in one step.

.. math:: H = \mathrm{drop}\big(\mathrm{ReLU}(\mathrm{drop}(X) W_1^⊤ + b_1)\big), \qquad
          Z = H W_2^⊤ + b_2

and the same without dropout. With :math:`G = ∂ℓ/∂Z` and p the dropout rate,

.. math:: D = G W_2 ∘ [H > 0] / (1 - p), \quad ∂W_2 = G^⊤ H, \quad ∂b_2 = G^⊤ 1, \quad
          ∂W_1 = D^⊤ \mathrm{drop}(X), \quad ∂b_1 = D^⊤ 1.

Every tensor but X has a dimension for runs that are computed at once. Runs with features of their
own are computed one after the other. There is only a version for
GPUs, :mod:`nfgnn.kernels.fused_mlp`; elsewhere :meth:`nfgnn.nn.MLP.forward_pair` makes two passes.
"""

from collections.abc import Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.nn.dropout import Rate
from nfgnn.nn.features import Features, is_dense
from nfgnn.spectral import fast_apply, join_runs, triton_supports


def can_fuse(x: Features, layers: Sequence[Any], rate: Rate) -> TypeGuard[Tensor]:
    """Return whether the kernels serve these layers.

    They take dense features in float32 on a GPU, two layers with dropout, and few channels. With
    many features the matrix product dominates, and that of torch is as good.
    """
    if len(layers) != 2 or not is_dense(x):
        return False
    if not triton_supports(x) or x.requires_grad or not x.is_contiguous():
        return False
    if not isinstance(rate, Tensor) and rate <= 0:
        return False
    from nfgnn.kernels import fused_mlp as kernel

    hidden, features = layers[0].weight.shape
    classes = layers[1].out_features
    return bool(
        features <= kernel.MAX_FEATURES
        and hidden <= kernel.MAX_HIDDEN
        and classes <= kernel.MAX_CLASSES
    )


def fused_mlp(x: Tensor, layers: Sequence[Any], rate: Rate) -> tuple[Tensor, Tensor]:
    """Return the logits of training and, without gradient, of evaluation: ``[n, classes]`` each."""
    if isinstance(rate, Tensor):
        rates = rate[None]
    else:
        rates = torch.full((1,), rate, device=x.device)
    parameters = [part[None] for layer in layers for part in (layer.weight, layer.bias)]
    out, evaluated, *_ = _FusedMLP.apply(x, *parameters, rates)
    return out.squeeze(1), evaluated.squeeze(1)


@fast_apply
class _FusedMLP(Function):
    @staticmethod
    def forward(
        x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, rates: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        from nfgnn.kernels import fused_mlp as kernel

        # The kernel of the backward pass draws the dropout masks again from these seeds, which
        # saves storing them.
        seeds = torch.randint(2**62, (w1.shape[0], 2), device=x.device)
        return *kernel.forward(x, w1, b1, w2, b2, rates, seeds), seeds

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        x, _, _, w2, _, rates = inputs
        _, evaluated, hidden, seeds = output
        ctx.mark_non_differentiable(evaluated, hidden, seeds)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, hidden, w2, rates, seeds)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        return None, *_FusedMLPGradient.apply(grad, *ctx.saved_tensors), None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], x: Tensor, *inputs: Tensor
    ) -> tuple[Any, tuple[int, ...]]:
        if in_dims[0] is not None:
            return _run_by_run(_FusedMLP, info.batch_size, in_dims, (x, *inputs))
        batch = info.batch_size
        parts = _FusedMLP.apply(x, *join_runs(batch, in_dims[1:], inputs, (0,) * 5))
        dims = (1, 1, 0, 0)
        out = tuple(part.unflatten(dim, (batch, -1)) for part, dim in zip(parts, dims))
        return out, dims


@fast_apply
class _FusedMLPGradient(Function):
    @staticmethod
    def forward(
        grad: Tensor, x: Tensor, hidden: Tensor, w2: Tensor, rates: Tensor, seeds: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        from nfgnn.kernels import fused_mlp as kernel

        return kernel.backward(grad, x, hidden, w2, rates, seeds)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], grad: Tensor, x: Tensor, *inputs: Tensor
    ) -> tuple[Any, tuple[int, ...]]:
        if in_dims[1] is not None:
            return _run_by_run(_FusedMLPGradient, info.batch_size, in_dims, (grad, x, *inputs))
        batch = info.batch_size
        (grad,) = join_runs(batch, in_dims[:1], (grad,), (1,))
        joined = join_runs(batch, in_dims[2:], inputs, (0,) * 4)
        parts = _FusedMLPGradient.apply(grad, x, *joined)
        return tuple(part.unflatten(0, (batch, -1)) for part in parts), (0,) * 4


def _run_by_run(
    function: Any, runs: int, in_dims: Sequence[int | None], inputs: Sequence[Tensor]
) -> tuple[Any, tuple[int, ...]]:
    """Call a function for every run alone, because the kernels read one matrix of features."""
    results = []
    for run in range(runs):
        own = []
        for value, dim in zip(inputs, in_dims):
            own.append(value if dim is None else value.select(dim, run).contiguous())
        results.append(function.apply(*own))
    stacked = tuple(torch.stack(parts) for parts in zip(*results))
    return stacked, (0,) * len(stacked)
