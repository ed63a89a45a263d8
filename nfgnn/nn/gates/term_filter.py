r"""Coefficients of :class:`~nfgnn.nn.gates.TermGate` and weighted sum in one step.

.. math:: Z_i = \sum_k η_{ik} X^{(k)}_i, \qquad η_{ik} = \sum_j σ\big(X^{(k)}_i · W_j\big)\, Γ_{kj}

with σ the sigmoid. The backward pass keeps only the terms. With :math:`G = ∂ℓ/∂Z`,
:math:`h = σ(XW)`, :math:`δ_{ik} = X^{(k)}_i · G_i` and
:math:`s_{ikj} = δ_{ik}\, Γ_{kj}\, h_{ikj} (1 - h_{ikj})`,

.. math:: ∂X^{(k)}_i = η_{ik} G_i + \sum_j s_{ikj} W_j, \qquad
          ∂W_j = \sum_{ik} s_{ikj} X^{(k)}_i, \qquad ∂Γ_{kj} = \sum_i δ_{ik} h_{ikj}.

Every tensor has a dimension for runs that are computed at once: terms are
``[K + 1, n, runs, channels]``. :mod:`nfgnn.kernels.term_filter` is the twin for GPUs.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.spectral import fast_apply, join_runs, transforming, triton_supports


def term_filter(terms: Tensor, weight: Tensor, gamma: Tensor) -> Tensor:
    """Return Z ``[n, channels]``.

    Args:
        terms: ``[K + 1, n, channels]``.
        weight: W, ``[channels, d]``.
        gamma: Γ, ``[K + 1, d]``.
    """
    out: Tensor = _TermFilter.apply(terms.unsqueeze(2), weight.unsqueeze(0), gamma.unsqueeze(0))
    return out.squeeze(1)


@fast_apply
class _TermFilter(Function):
    @staticmethod
    def forward(terms: Tensor, weight: Tensor, gamma: Tensor) -> Tensor:
        if _use_kernel(terms):
            from nfgnn.kernels import term_filter as kernel

            return kernel.forward(terms, weight, gamma)
        return forward(terms, weight, gamma)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if torch.is_grad_enabled() and not transforming():
            return backward(grad, *ctx.saved_tensors)  # differentiable, for a second derivative
        gradients: tuple[Tensor, Tensor, Tensor]
        gradients = _TermFilterGradient.apply(grad, *ctx.saved_tensors)
        return gradients

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        out = _TermFilter.apply(*join_runs(info.batch_size, in_dims, inputs, (2, 0, 0)))
        return out.unflatten(1, (info.batch_size, -1)), 1


@fast_apply
class _TermFilterGradient(Function):
    @staticmethod
    def forward(
        grad: Tensor, terms: Tensor, weight: Tensor, gamma: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        if _use_kernel(terms):
            from nfgnn.kernels import term_filter as kernel

            return kernel.backward(grad, terms, weight, gamma)
        return backward(grad, terms, weight, gamma)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        batch = info.batch_size
        d_terms, d_weight, d_gamma = _TermFilterGradient.apply(
            *join_runs(batch, in_dims, inputs, (1, 2, 0, 0))
        )
        gradients = (
            d_terms.unflatten(2, (batch, -1)),
            d_weight.unflatten(0, (batch, -1)),
            d_gamma.unflatten(0, (batch, -1)),
        )
        return gradients, (2, 0, 0)


def _use_kernel(terms: Tensor) -> bool:
    if not triton_supports(terms):
        return False
    from nfgnn.kernels import term_filter as kernel

    return terms.shape[-1] <= kernel.MAX_CHANNELS


def forward(terms: Tensor, weight: Tensor, gamma: Tensor) -> Tensor:
    """Return Z ``[n, runs, channels]``, with torch."""
    _, eta = _coefficients(terms, weight, gamma)
    return (eta[..., None] * terms).sum(0)


def backward(
    grad: Tensor, terms: Tensor, weight: Tensor, gamma: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients for the terms, W and Γ, with torch."""
    h, eta = _coefficients(terms, weight, gamma)
    delta = (terms * grad).sum(-1, keepdim=True)
    s = delta * _by_order(gamma) * h * (1 - h)
    d_terms = _per_run(s, weight.mT).add_(eta[..., None] * grad)
    d_weight = _rows_per_run(terms).mT @ _rows_per_run(s)
    d_gamma = (delta * h).sum(1).transpose(0, 1)
    return d_terms, d_weight, d_gamma


def _coefficients(terms: Tensor, weight: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    """Return h and η."""
    h = torch.sigmoid(_per_run(terms, weight))
    return h, (h * _by_order(gamma)).sum(-1)


def _per_run(values: Tensor, matrices: Tensor) -> Tensor:
    """Multiply the rows ``[K + 1, n, runs, a]`` of every run by its matrix ``[runs, a, b]``."""
    if matrices.shape[0] == 1:
        return values @ matrices[0]
    return torch.einsum("knsa,sab->knsb", values, matrices)


def _rows_per_run(values: Tensor) -> Tensor:
    """Return ``[K + 1, n, runs, a]`` as ``[runs, (K + 1) n, a]``."""
    runs, width = values.shape[2:]
    return values.movedim(2, 0).reshape(runs, -1, width)


def _by_order(gamma: Tensor) -> Tensor:
    """Return Γ ``[runs, K + 1, d]`` in a shape that broadcasts over ``[K + 1, n, runs, d]``."""
    return gamma.transpose(0, 1).unsqueeze(1)
