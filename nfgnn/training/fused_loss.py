r"""Loss, its gradient and accuracy of logits in one go.

.. math:: ℓ = \sum_i w_i \big(-\log \mathrm{softmax}(Z_i) · τ_i\big), \qquad
          ∂ℓ/∂Z_i = w_i \big(\mathrm{softmax}(Z_i) - τ_i\big)

with the weights :math:`w_i` of the nodes, 1 / (number of nodes) on those that count and 0 elsewhere, and the targets
:math:`τ_i`: the label, of which a ``share`` may be spread evenly over all classes.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.spectral import fast_apply, serves_triton


def loss_and_accuracy(
    logits: Tensor, weight: Tensor, y: Tensor, share: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Of logits ``[n, classes]``, weights ``[n]`` and labels ``[n]``; the loss has a gradient, under ``vmap`` too."""
    share = None if share is None else share[None]
    loss, accuracy, _ = _Scores.apply(logits.unsqueeze(1), weight[None], y, share)
    return loss[0], accuracy[0]


@fast_apply
class _Scores(Function):
    """The gradient is made with the loss: it costs one more number a logit, and spares a pass."""

    @staticmethod
    def forward(
        logits: Tensor, weight: Tensor, y: Tensor, share: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if not serves_triton(logits):
            return scores(logits, weight, y, share)
        from nfgnn.kernels import training_step

        return training_step.scores(logits, weight, y, share)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: tuple[Tensor, Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(output[2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor, None, None, None]:
        return grad[:, None] * ctx.saved_tensors[0], None, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        logits: Tensor,
        weight: Tensor,
        y: Tensor,
        share: Tensor | None,
    ) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[int, int, int]]:
        """More runs: the batch joins the dimension that is there for them."""
        B, (at, weight_at, _, share_at) = info.batch_size, in_dims
        logits = (
            logits.unsqueeze(0).expand(B, *logits.shape) if at is None else logits.movedim(at, 0)
        )
        weight = (
            weight.unsqueeze(0).expand(B, *weight.shape)
            if weight_at is None
            else weight.movedim(weight_at, 0)
        )
        if share is not None:
            share = (
                share.unsqueeze(0).expand(B, -1) if share_at is None else share.movedim(share_at, 0)
            ).flatten()
        folded = logits.movedim(0, 1).flatten(1, 2), weight.flatten(0, 1)
        loss, accuracy, gradient = _Scores.apply(*folded, y, share)
        parts = (
            loss.unflatten(0, (B, -1)),
            accuracy.unflatten(0, (B, -1)),
            gradient.unflatten(1, (B, -1)),
        )
        return parts, (0, 0, 1)


def scores(
    logits: Tensor, weight: Tensor, y: Tensor, share: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Loss ``[runs]``, accuracy ``[runs]`` and the gradient from logits ``[n, runs, classes]``, weights ``[runs, n]``,
    labels ``[n]`` and shares ``[runs]``."""
    likelihood, w = logits.log_softmax(-1), weight.T
    label = y[:, None, None].expand(-1, logits.shape[1], 1)
    surprise = -likelihood.gather(-1, label)[..., 0]
    gradient = likelihood.exp()
    if share is None:
        gradient.scatter_add_(-1, label, -torch.ones_like(surprise)[..., None])
    else:
        surprise = torch.lerp(surprise, -likelihood.mean(-1), share)
        gradient.sub_(share[:, None] / logits.shape[-1]).scatter_add_(
            -1, label, (share - 1)[:, None].expand(label.shape)
        )
    counts = w != 0
    loss = torch.where(counts, w * surprise, 0.0).sum(0)
    accuracy = (w * (logits.argmax(-1) == y[:, None])).sum(0)
    return loss, accuracy, torch.where(counts[..., None], w[..., None] * gradient, 0.0)
