"""The one engine: a basis' recurrence, and its adjoint as backward pass."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.spectral.backend import backend
from nfgnn.spectral.bases import Basis
from nfgnn.spectral.columns import fold, unfold
from nfgnn.spectral.csr import CSR
from nfgnn.spectral.fast_apply import quick
from nfgnn.spectral.laplacian import ScaledLaplacian, fold_table

Table = list[tuple[float, float, float]]
"""Rows (a, b, c) of a recurrence in Â: see :func:`~nfgnn.spectral.laplacian.fold_table`."""


def polynomial_terms(x: Tensor, operator: ScaledLaplacian, basis: Basis, K: int) -> Tensor:
    r"""All terms :math:`X^{(k)} = p_k(\tilde L)\,X`, shape ``[K + 1, n, channels]``.

    K sparse products forward and K backward, whatever the basis.
    """
    return mix_terms(recurrence_terms(x, operator, basis, K), basis, K)


def each_term(x: Tensor, operator: ScaledLaplacian, basis: Basis, K: int) -> Iterator[Tensor]:
    """:func:`recurrence_terms` one after the other, in the memory of a few terms and without gradients.

    ``x`` must be contiguous and is overwritten; what is yielded holds until the next term is asked for.
    """
    terms: Iterator[Tensor] = backend(x).each_term(
        x, operator, folded_table(basis, K, operator.lambda_max)
    )
    return terms


def mix_terms(terms: Tensor, basis: Basis, K: int) -> Tensor:
    """The basis' terms from those of its table: :meth:`Basis.mixing` applied along the first dimension.

    On the CPU as a product with a matrix in compressed rows, of which every element is summed in the same order
    whatever the number of columns; the bits of a dense product depend on its shape.
    """
    mixing = mixing_matrix(basis, K, terms.dtype, terms.device)
    if mixing is None:
        return terms
    flat = terms.flatten(1)
    return (mixing @ flat if terms.is_cuda else _mixing_rows(basis, K, terms.dtype) @ flat).view(
        terms.shape
    )


def recurrence_terms(x: Tensor, operator: ScaledLaplacian, basis: Basis, K: int) -> Tensor:
    """The terms of the basis' table alone, before :meth:`Basis.mixing`."""
    if x.shape[-2] != operator.num_nodes:
        raise ValueError(f"x has {x.shape[-2]} rows, the graph has {operator.num_nodes} nodes")
    terms: Tensor = _Terms.apply(x, operator, folded_table(basis, K, operator.lambda_max))
    return terms


def paired_terms(
    x: Tensor, held: Tensor, operator: ScaledLaplacian, basis: Basis, K: int
) -> tuple[Tensor, Tensor]:
    """:func:`recurrence_terms` of two signals by one recurrence over the columns of both; ``held`` has no gradient.

    A product reads the graph once whatever the number of columns, so a second signal costs little.
    """
    terms: tuple[Tensor, Tensor] = _PairedTerms.apply(
        x, held, operator, folded_table(basis, K, operator.lambda_max)
    )
    return terms


def neighbourhood_means(x: Tensor, operator: ScaledLaplacian, steps: int) -> Tensor:
    r""":math:`P^k X` for k = 0 … ``steps`` with the average over neighbours :math:`P = D^{-1} A`,
    ``[steps + 1, n, channels]``.

    The same engine runs it, since :math:`P^k = D^{-1/2} \hat A^k D^{1/2}`. A node without neighbours has zeros.
    """
    root = operator.degree.sqrt().to(x.dtype)[:, None]
    powers: Tensor = _Terms.apply(x * root, operator, [(1.0, 0.0, 0.0)] * steps)
    return torch.cat([x[None], powers[1:] * operator.scale.to(x.dtype)[:, None]])


@lru_cache(maxsize=256)
def mixing_matrix(basis: Basis, K: int, dtype: torch.dtype, device: torch.device) -> Tensor | None:
    """:meth:`Basis.mixing`, made once for a precision and a device."""
    with torch.inference_mode(False), torch.no_grad():
        mixing = basis.mixing(K)
        return None if mixing is None else mixing.to(device, dtype)


@lru_cache(maxsize=256)
def _mixing_rows(basis: Basis, K: int, dtype: torch.dtype) -> CSR:
    mixing = mixing_matrix(basis, K, dtype, torch.device("cpu"))
    assert mixing is not None
    indptr, columns = torch.arange(0, (K + 1) ** 2 + 1, K + 1), torch.arange(K + 1).repeat(K + 1)
    return CSR(indptr, columns, mixing.flatten(), (K + 1, K + 1))


@lru_cache(maxsize=256)
def folded_table(basis: Basis, K: int, lambda_max: float) -> Table:
    """The table of a basis in Â, made once."""
    return fold_table(basis.table(K), lambda_max)


@quick
class _Terms(Function):
    r"""Forward recurrence :math:`X_{k+1} = a_k \hat A X_k + b_k X_k + c_k X_{k-1}`."""

    @staticmethod
    def forward(x: Tensor, operator: ScaledLaplacian, table: Table) -> Tensor:
        out: Tensor = backend(x).terms(x, operator, table)
        return out

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, ScaledLaplacian, Table], output: Tensor
    ) -> None:
        _, ctx.operator, ctx.table = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Adjoint.apply(grad, ctx.operator, ctx.table), None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        x: Tensor,
        operator: ScaledLaplacian,
        table: Table,
    ) -> tuple[Tensor, int]:
        return unfold(_Terms.apply(fold(x, in_dims[0]), operator, table), info.batch_size), 2


@quick
class _PairedTerms(Function):
    """:class:`_Terms` of two signals; backward goes only the first one's gradient."""

    @staticmethod
    def forward(
        x: Tensor, held: Tensor, operator: ScaledLaplacian, table: Table
    ) -> tuple[Tensor, Tensor]:
        width = x.shape[1]
        terms: Tensor = backend(x).terms(torch.cat([x, held], 1), operator, table)
        pair = terms[..., :width], terms[..., width:]
        return (
            pair if x.is_cuda else (pair[0].contiguous(), pair[1].contiguous())
        )  # our kernels read either

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, ScaledLaplacian, Table], output: Any
    ) -> None:
        _, _, ctx.operator, ctx.table = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None, None, None]:
        return _Adjoint.apply(grad, ctx.operator, ctx.table), None, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        x: Tensor,
        held: Tensor,
        operator: ScaledLaplacian,
        table: Table,
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        pair = _PairedTerms.apply(fold(x, in_dims[0]), fold(held, in_dims[1]), operator, table)
        return (unfold(pair[0], info.batch_size), unfold(pair[1], info.batch_size)), (2, 2)


@quick
class _Adjoint(Function):
    r"""The transposed map, again a recurrence (Clenshaw), since :math:`\hat A` is symmetric.

    .. math:: S_k = G_k + a_k \hat A S_{k+1} + b_k S_{k+1} + c_{k+1} S_{k+2}, \qquad S_{K+1} = S_{K+2} = 0

    and the gradient for the input is :math:`S_0`. Nothing of the forward pass is kept.
    """

    @staticmethod
    def forward(grad: Tensor, operator: ScaledLaplacian, table: Table) -> Tensor:
        out: Tensor = backend(grad).adjoint(grad, operator, table)
        return out

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, ScaledLaplacian, Table], output: Tensor
    ) -> None:
        _, ctx.operator, ctx.table = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Terms.apply(grad, ctx.operator, ctx.table), None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        grad: Tensor,
        operator: ScaledLaplacian,
        table: Table,
    ) -> tuple[Tensor, int]:
        return unfold(_Adjoint.apply(fold(grad, in_dims[0]), operator, table), info.batch_size), 1
