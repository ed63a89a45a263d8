r"""An MLP of two layers in training and in evaluation, in one go.

.. math:: H = \mathrm{drop}\big(\mathrm{ReLU}(\mathrm{drop}(X) W_1^⊤ + b_1)\big), \qquad Z = H W_2^⊤ + b_2

and beside it the same without dropout. With :math:`G = ∂ℓ/∂Z` and p the share that is dropped,

.. math:: D = G W_2 ∘ [H > 0] / (1 - p), \quad ∂W_2 = G^⊤ H, \quad ∂b_2 = G^⊤ 1, \quad
          ∂W_1 = D^⊤ \mathrm{drop}(X), \quad ∂b_1 = D^⊤ 1.

Inside, every tensor but X has a dimension for the runs that share the computation.
"""

from collections.abc import Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor, strided
from torch.autograd import Function

from nfgnn.nn.dropout import Rate
from nfgnn.spectral import CSR
from nfgnn.spectral.backend import serves_triton
from nfgnn.spectral.columns import join
from nfgnn.spectral.fast_apply import quick


def serves(x: Tensor | CSR, layers: Sequence[Any], rate: Rate) -> TypeGuard[Tensor]:
    """Whether there are kernels for these layers: dense features in float32 on a GPU, dropout, few channels.

    With many features the product takes the time, and torch's own is as good.
    """
    if len(layers) != 2 or isinstance(x, CSR) or x.layout != strided:
        return False
    if not serves_triton(x) or x.requires_grad or not x.is_contiguous():
        return False
    from nfgnn.kernels.two_layer_mlp import MAX_CLASSES, MAX_FEATURES, MAX_HIDDEN

    (hidden, features), classes = layers[0].weight.shape, layers[1].out_features
    fits = features <= MAX_FEATURES and hidden <= MAX_HIDDEN and classes <= MAX_CLASSES
    return fits and (isinstance(rate, Tensor) or rate > 0)


def two_layers(x: Tensor, layers: Sequence[Any], rate: Rate) -> tuple[Tensor, Tensor]:
    """Scores in training, and those in evaluation, which have no gradient: ``[n, classes]`` both."""
    rates = rate[None] if isinstance(rate, Tensor) else torch.full((1,), rate, device=x.device)
    parameters = [part[None] for layer in layers for part in (layer.weight, layer.bias)]
    out, held, *_ = _TwoLayers.apply(x, *parameters, rates)
    return out.squeeze(1), held.squeeze(1)


@quick
class _TwoLayers(Function):
    @staticmethod
    def forward(
        x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, rates: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        from nfgnn.kernels import two_layer_mlp as kernel

        seeds = torch.randint(2**62, (w1.shape[0], 2), device=x.device)
        return *kernel.forward(x, w1, b1, w2, b2, rates, seeds), seeds

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor, Tensor, Tensor]
    ) -> None:
        x, _, _, w2, _, rates = inputs
        _, held, hidden, seeds = output
        ctx.mark_non_differentiable(held, hidden, seeds)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, hidden, w2, rates, seeds)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        return None, *_TwoLayersGradient.apply(grad, *ctx.saved_tensors), None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], x: Tensor, *inputs: Tensor
    ) -> tuple[Any, tuple[int, ...]]:
        """More runs: the batch joins the dimension that is there for them."""
        assert in_dims[0] is None, "all runs have the same features"
        out = _TwoLayers.apply(x, *join(info.batch_size, in_dims[1:], inputs, (0,) * 5))
        dims = (1, 1, 0, 0)
        return tuple(
            part.unflatten(dim, (info.batch_size, -1)) for part, dim in zip(out, dims)
        ), dims


@quick
class _TwoLayersGradient(Function):
    @staticmethod
    def forward(
        grad: Tensor, x: Tensor, hidden: Tensor, w2: Tensor, rates: Tensor, seeds: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        from nfgnn.kernels import two_layer_mlp as kernel

        return kernel.backward(grad, x, hidden, w2, rates, seeds)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], grad: Tensor, x: Tensor, *inputs: Tensor
    ) -> tuple[Any, tuple[int, ...]]:
        (grad,) = join(info.batch_size, in_dims[:1], (grad,), (1,))
        out = _TwoLayersGradient.apply(
            grad, x, *join(info.batch_size, in_dims[2:], inputs, (0,) * 4)
        )
        return tuple(part.unflatten(0, (info.batch_size, -1)) for part in out), (0,) * 4
