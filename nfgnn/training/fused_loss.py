r"""Cross-entropy, its gradient and the accuracy of logits in one pass.

.. math:: ℓ = \sum_i w_i \big(-\log \mathrm{softmax}(Z_i) · τ_i\big), \qquad
          ∂ℓ/∂Z_i = w_i \big(\mathrm{softmax}(Z_i) - τ_i\big)

The weight :math:`w_i` is 1 / (number of nodes) for nodes of the mask and 0 elsewhere. The target
:math:`τ_i` is the label, of which a ``share`` may be spread evenly over all classes.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.spectral import fast_apply, triton_supports


def loss_and_accuracy(
    logits: Tensor, weight: Tensor, y: Tensor, share: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the weighted loss and accuracy. The loss has a gradient, also under ``vmap``.

    Args:
        logits: ``[n, classes]``.
        weight: weights of the nodes, ``[n]``.
        y: labels, ``[n]``.
        share: label smoothing, a scalar tensor.
    """
    share = None if share is None else share[None]
    loss, accuracy, _ = _FusedLoss.apply(logits.unsqueeze(1), weight[None], y, share)
    return loss[0], accuracy[0]


@fast_apply
class _FusedLoss(Function):
    """Computes the gradient together with the loss, which saves a pass over the logits."""

    @staticmethod
    def forward(
        logits: Tensor, weight: Tensor, y: Tensor, share: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if not triton_supports(logits):
            return loss_and_gradient(logits, weight, y, share)
        from nfgnn.kernels import training_step

        return training_step.loss_and_gradient(logits, weight, y, share)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: tuple[Tensor, Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(output[2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return grad[:, None] * gradient, None, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        logits: Tensor,
        weight: Tensor,
        y: Tensor,
        share: Tensor | None,
    ) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[int, int, int]]:
        """Fold the batch of ``vmap`` into the dimension of the runs."""
        batch = info.batch_size
        logits = _batch_first(logits, in_dims[0], batch)
        weight = _batch_first(weight, in_dims[1], batch)
        if share is not None:
            share = _batch_first(share, in_dims[3], batch).flatten()
        folded_logits = logits.movedim(0, 1).flatten(1, 2)
        loss, accuracy, gradient = _FusedLoss.apply(folded_logits, weight.flatten(0, 1), y, share)
        results = (
            loss.unflatten(0, (batch, -1)),
            accuracy.unflatten(0, (batch, -1)),
            gradient.unflatten(1, (batch, -1)),
        )
        return results, (0, 0, 1)


def _batch_first(value: Tensor, dim: int | None, batch: int) -> Tensor:
    """Return the value with its batch dimension in front, expanded where it has none."""
    if dim is None:
        return value.unsqueeze(0).expand(batch, *value.shape)
    return value.movedim(dim, 0)


def loss_and_gradient(
    logits: Tensor, weight: Tensor, y: Tensor, share: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The torch twin of the kernel ``training_step.loss_and_gradient``.

    Args:
        logits: ``[n, runs, classes]``.
        weight: ``[runs, n]``.
        y: labels, ``[n]``.
        share: label smoothing, ``[runs]``.

    Returns:
        Loss ``[runs]``, accuracy ``[runs]`` and gradient ``[n, runs, classes]``.
    """
    log_probability = logits.log_softmax(-1)
    w = weight.T
    label = y[:, None, None].expand(-1, logits.shape[1], 1)
    node_loss = -log_probability.gather(-1, label)[..., 0]
    gradient = log_probability.exp()
    if share is None:
        gradient.scatter_add_(-1, label, -torch.ones_like(node_loss)[..., None])
    else:
        node_loss = torch.lerp(node_loss, -log_probability.mean(-1), share)
        gradient.sub_(share[:, None] / logits.shape[-1])
        gradient.scatter_add_(-1, label, (share - 1)[:, None].expand(label.shape))
    # Logits of nodes outside the mask may be infinite: 0 times infinity must not spoil the sum.
    counted = w != 0
    loss = torch.where(counted, w * node_loss, 0.0).sum(0)
    accuracy = (w * (logits.argmax(-1) == y[:, None])).sum(0)
    return loss, accuracy, torch.where(counted[..., None], w[..., None] * gradient, 0.0)
