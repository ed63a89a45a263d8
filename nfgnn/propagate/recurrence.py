"""The one engine: a basis' recurrence, and its adjoint as backward pass."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.basis import Basis
from nfgnn.propagate.columns import fold, unfold
from nfgnn.propagate.csr import CSR
from nfgnn.propagate.laplacian import ScaledLaplacian

Table = list[tuple[float, float, float]]
"""Rows (a, b, c) of a recurrence in Â: see :meth:`ScaledLaplacian.fold`."""


def polynomial_terms(x: Tensor, operator: ScaledLaplacian, basis: Basis, K: int) -> Tensor:
    r"""All terms :math:`X^{(k)} = p_k(\tilde L)\,X`, shape ``[K + 1, n, channels]``.

    K sparse products forward and K backward, whatever the basis.
    """
    terms = recurrence_terms(x, operator, basis, K)
    mixing = basis.mixing(K)
    return terms if mixing is None else (mixing.to(terms) @ terms.flatten(1)).view_as(terms)


def recurrence_terms(x: Tensor, operator: ScaledLaplacian, basis: Basis, K: int) -> Tensor:
    """The terms of the basis' table alone, before :meth:`Basis.mixing`."""
    if x.shape[-2] != operator.num_nodes:
        raise ValueError(f"x has {x.shape[-2]} rows, the graph has {operator.num_nodes} nodes")
    terms: Tensor = _Terms.apply(x, operator.adjacency(x.dtype), operator.fold(basis.table(K)))
    return terms


class _Terms(Function):
    r"""Forward recurrence :math:`X_{k+1} = a_k \hat A X_k + b_k X_k + c_k X_{k-1}`."""

    @staticmethod
    def forward(x: Tensor, adjacency: CSR, table: Table) -> Tensor:
        terms = x.new_empty((len(table) + 1, *x.shape))
        terms[0] = x
        for k, (a, b, c) in enumerate(table):
            _step(adjacency, terms[k], a, b, terms[k - 1], c, out=terms[k + 1])
        return terms

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, CSR, Table], output: Tensor) -> None:
        _, ctx.adjacency, ctx.table = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Adjoint.apply(grad, ctx.adjacency, ctx.table), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], x: Tensor, adjacency: CSR, table: Table) -> tuple[Tensor, int]:
        return unfold(_Terms.apply(fold(x, in_dims[0]), adjacency, table), info.batch_size), 2


class _Adjoint(Function):
    r"""The transposed map, again a recurrence (Clenshaw), since :math:`\hat A` is symmetric.

    .. math:: S_k = G_k + a_k \hat A S_{k+1} + b_k S_{k+1} + c_{k+1} S_{k+2}, \qquad S_{K+1} = S_{K+2} = 0

    and the gradient for the input is :math:`S_0`. Nothing of the forward pass is kept.
    """

    @staticmethod
    def forward(grad: Tensor, adjacency: CSR, table: Table) -> Tensor:
        K = len(table)
        older, newer = None, grad[K].contiguous()
        for k in range(K - 1, -1, -1):
            a, b, _ = table[k]
            c = table[k + 1][2] if k + 1 < K else 0.0
            step = _step(adjacency, newer, a, b, grad[k], 1.0)
            if older is not None and c:
                step.add_(older, alpha=c)
            older, newer = newer, step
        return newer.clone() if K == 0 else newer

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, CSR, Table], output: Tensor) -> None:
        _, ctx.adjacency, ctx.table = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Terms.apply(grad, ctx.adjacency, ctx.table), None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], grad: Tensor, adjacency: CSR, table: Table
    ) -> tuple[Tensor, int]:
        return unfold(_Adjoint.apply(fold(grad, in_dims[0]), adjacency, table), info.batch_size), 1


def _step(adjacency: CSR, x: Tensor, a: float, b: float, add: Tensor, c: float, out: Tensor | None = None) -> Tensor:
    """a Â x + b x + c · add."""
    if c:
        result = torch.addmm(add, adjacency.tensor, x, beta=c, alpha=a, out=out)
    else:
        result = torch.mm(adjacency.tensor, x, out=out)
        if a != 1:
            result.mul_(a)
    return result.add_(x, alpha=b) if b else result
