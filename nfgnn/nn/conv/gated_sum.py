r"""Algorithm 1's coefficients and weighted sum in one go.

.. math:: Z_i = \sum_k η_{ik} X^{(k)}_i, \qquad η_{ik} = \sum_j σ\big(X^{(k)}_i · W_j\big)\, Γ_{kj}

with σ the sigmoid. The backward pass keeps only the terms: with :math:`G = ∂ℓ/∂Z`, :math:`h = σ(XW)`,
:math:`δ_{ik} = X^{(k)}_i · G_i` and :math:`s_{ikj} = δ_{ik}\, Γ_{kj}\, h_{ikj} (1 - h_{ikj})`,

.. math:: ∂X^{(k)}_i = η_{ik} G_i + \sum_j s_{ikj} W_j, \qquad
          ∂W_j = \sum_{ik} s_{ikj} X^{(k)}_i, \qquad ∂Γ_{kj} = \sum_i δ_{ik} h_{ikj}.

Inside, every tensor has a dimension for the runs that share the computation: terms ``[K + 1, n, runs, channels]``.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.spectral.backend import serves_triton
from nfgnn.spectral.columns import join
from nfgnn.spectral.fast_apply import quick


def gated_sum(terms: Tensor, weight: Tensor, gamma: Tensor) -> Tensor:
    """Z ``[n, channels]`` from terms ``[K + 1, n, channels]``, W ``[channels, d]`` and Γ ``[K + 1, d]``."""
    out: Tensor = _GatedSum.apply(terms.unsqueeze(2), weight.unsqueeze(0), gamma.unsqueeze(0))
    return out.squeeze(1)


@quick
class _GatedSum(Function):
    @staticmethod
    def forward(terms: Tensor, weight: Tensor, gamma: Tensor) -> Tensor:
        return _forward(terms, weight, gamma)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return _GatedSumGradient.apply(grad, *ctx.saved_tensors)  # type: ignore[no-any-return]

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        """More runs: the batch joins the dimension that is there for them."""
        out = _GatedSum.apply(*join(info.batch_size, in_dims, inputs, (2, 0, 0)))
        return out.unflatten(1, (info.batch_size, -1)), 1


@quick
class _GatedSumGradient(Function):
    @staticmethod
    def forward(
        grad: Tensor, terms: Tensor, weight: Tensor, gamma: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        return _backward(grad, terms, weight, gamma)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor
    ) -> tuple[Any, tuple[int, int, int]]:
        out = _GatedSumGradient.apply(*join(info.batch_size, in_dims, inputs, (1, 2, 0, 0)))
        dims = (2, 0, 0)
        return tuple(
            part.unflatten(dim, (info.batch_size, -1)) for part, dim in zip(out, dims)
        ), dims


def _on_gpu(terms: Tensor) -> bool:
    return serves_triton(terms) and terms.shape[-1] <= 128


def _forward(terms: Tensor, weight: Tensor, gamma: Tensor) -> Tensor:
    if _on_gpu(terms):
        from nfgnn.kernels import gated_sum as kernel

        return kernel.forward(terms, weight, gamma)
    _, eta = _coefficients(terms, weight, gamma)
    return (eta[..., None] * terms).sum(0)


def _backward(
    grad: Tensor, terms: Tensor, weight: Tensor, gamma: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    if _on_gpu(terms):
        from nfgnn.kernels import gated_sum as kernel

        return kernel.backward(grad, terms, weight, gamma)
    h, eta = _coefficients(terms, weight, gamma)
    delta = (terms * grad).sum(-1, keepdim=True)
    s = delta * _by_order(gamma) * h * (1 - h)
    d_terms = _per_run(s, weight.mT).add_(eta[..., None] * grad)
    runs = weight.shape[0]
    flat_terms, flat_s = (
        part.movedim(2, 0).reshape(runs, -1, part.shape[-1]) for part in (terms, s)
    )
    return d_terms, flat_terms.mT @ flat_s, (delta * h).sum(1).transpose(0, 1)


def _coefficients(terms: Tensor, weight: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    h = torch.sigmoid(_per_run(terms, weight))
    return h, (h * _by_order(gamma)).sum(-1)


def _per_run(values: Tensor, matrices: Tensor) -> Tensor:
    """Every run's rows times its matrix: ``[K + 1, n, runs, a]`` and ``[runs, a, b]`` → ``[K + 1, n, runs, b]``."""
    if matrices.shape[0] == 1:
        return values @ matrices[0]
    return torch.einsum("knsa,sab->knsb", values, matrices)


def _by_order(gamma: Tensor) -> Tensor:
    """Γ ``[runs, K + 1, d]`` beside terms ``[K + 1, n, runs, …]``."""
    return gamma.transpose(0, 1).unsqueeze(1)
