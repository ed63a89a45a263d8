"""The engine: the recurrence of a basis, with its adjoint as backward pass."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.errors import UserError
from nfgnn.spectral.autograd import fast_apply, fold_columns, unfold_columns
from nfgnn.spectral.backend import at_least_float32, backend
from nfgnn.spectral.bases import Basis
from nfgnn.spectral.csr import CSR
from nfgnn.spectral.laplacian import ScaledLaplacian
from nfgnn.spectral.torch_backend import Table, laplacian_table
from nfgnn.spectral.traced import TracedLaplacian
from nfgnn.tensor_cache import constants


def polynomial_terms(x: Tensor, operator: ScaledLaplacian, basis: Basis, K: int) -> Tensor:
    r"""Return all terms :math:`X^{(k)} = p_k(\tilde L)\,X`, ``[K + 1, n, channels]``.

    Takes K sparse products forward and K backward, for every basis. They are computed in float32
    if x is bfloat16 or float16, and then rounded to the type of x.
    """
    if torch.compiler.is_compiling():
        # A compiler cannot trace the recurrence, so it breaks the graph here.
        compiled: Tensor = torch.compiler.disable(polynomial_terms)(x, operator, basis, K)
        return compiled
    return mix_terms(recurrence_terms(x, operator, basis, K), basis, K).to(x.dtype)


def recurrence_terms(x: Tensor, operator: ScaledLaplacian, basis: Basis, K: int) -> Tensor:
    """Return the terms of the basis' table, before :meth:`Basis.mixing`.

    Those of a signal in half precision are float32.
    """
    if x.shape[-2] != operator.num_nodes:
        raise UserError(f"x has {x.shape[-2]} rows, the graph has {operator.num_nodes} nodes")
    x = at_least_float32(x)
    table = recurrence_table(basis, K, operator.lambda_max)
    if operator.entries is not None:
        return operator.entries.terms(x, table)
    terms: Tensor = _Terms.apply(x, operator, table)
    return terms


def paired_terms(
    x: Tensor, constant: Tensor, operator: ScaledLaplacian, basis: Basis, K: int
) -> tuple[Tensor, Tensor]:
    """Return :func:`recurrence_terms` of two signals, of which the second has no gradient.

    One recurrence runs over the columns of both: a product reads the graph once for any number of
    columns, so a second signal costs little.
    """
    table = recurrence_table(basis, K, operator.lambda_max)
    x = at_least_float32(x)
    constant = at_least_float32(constant)
    if operator.entries is not None:
        return operator.entries.terms(x, table), _Terms.apply(constant.detach(), operator, table)
    terms: tuple[Tensor, Tensor] = _PairedTerms.apply(x, constant, operator, table)
    return terms


def each_term(x: Tensor, operator: ScaledLaplacian, basis: Basis, K: int) -> Iterator[Tensor]:
    """Yield :func:`recurrence_terms` one by one, in the memory of a few terms, without gradients.

    ``x`` must be contiguous and is overwritten. A term is valid until the next one is requested.
    """
    table = recurrence_table(basis, K, operator.lambda_max)
    terms: Iterator[Tensor] = backend(x).each_term(x, operator, table)
    return terms


def mix_terms(terms: Tensor, basis: Basis, K: int) -> Tensor:
    """Return the terms of the basis from those of its table: apply :meth:`Basis.mixing`."""
    mixing = mixing_matrix(basis, K, terms.dtype, terms.device)
    if mixing is None:
        return terms
    flat = terms.flatten(1)
    if terms.is_cuda:
        mixed = mixing @ flat
    else:
        # The order of summation in a dense product depends on its shape, so batched and single
        # runs would differ in the last bits. That of a sparse product does not.
        mixed = _mixing_rows(basis, K, terms.dtype) @ flat
    return mixed.view(terms.shape)


def neighbourhood_means(x: Tensor, operator: ScaledLaplacian, steps: int) -> Tensor:
    r"""Return :math:`P^k X` for k = 0 … ``steps``, ``[steps + 1, n, channels]``.

    :math:`P = D^{-1} A` averages over neighbours. The recurrence runs it, because :math:`P^k =
    D^{-1/2} \hat A^k D^{1/2}`. A node without neighbours has zeros.
    """
    root = operator.degree.sqrt().to(x.dtype)[:, None]
    powers: Tensor
    if isinstance(operator, TracedLaplacian):
        powers = operator.powers(x * root, steps)
    else:
        powers = _Terms.apply(x * root, operator, [(1.0, 0.0, 0.0)] * steps)
    return torch.cat([x[None], powers[1:] * operator.scale.to(x.dtype)[:, None]])


@lru_cache(maxsize=256)
def recurrence_table(basis: Basis, K: int, lambda_max: float) -> Table:
    r"""Return the table of a basis in :math:`\tilde L` as a recurrence in :math:`\hat A`."""
    return laplacian_table(basis.table(K).tolist(), lambda_max)


@lru_cache(maxsize=256)
def mixing_matrix(basis: Basis, K: int, dtype: torch.dtype, device: torch.device) -> Tensor | None:
    """Return :meth:`Basis.mixing` in a precision and on a device."""
    with constants():
        mixing = basis.mixing(K)
        return None if mixing is None else mixing.to(device, dtype)


@lru_cache(maxsize=256)
def _mixing_rows(basis: Basis, K: int, dtype: torch.dtype) -> CSR:
    mixing = mixing_matrix(basis, K, dtype, torch.device("cpu"))
    assert mixing is not None
    indptr = torch.arange(0, (K + 1) ** 2 + 1, K + 1)
    columns = torch.arange(K + 1).repeat(K + 1)
    return CSR(indptr, columns, mixing.flatten(), (K + 1, K + 1))


@fast_apply
class _Terms(Function):
    r"""Forward recurrence :math:`X_{k+1} = a_k \hat A X_k + b_k X_k + c_k X_{k-1}`."""

    @staticmethod
    def forward(x: Tensor, operator: ScaledLaplacian, table: Table) -> Tensor:
        out: Tensor = backend(x).terms(x, operator, table)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        _, ctx.operator, ctx.table = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Adjoint.apply(grad, ctx.operator, ctx.table), None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, x: Tensor, operator: ScaledLaplacian, table: Table
    ) -> tuple[Tensor, int]:
        terms = _Terms.apply(fold_columns(x, in_dims[0]), operator, table)
        return unfold_columns(terms, info.batch_size), 2


@fast_apply
class _PairedTerms(Function):
    """:class:`_Terms` of two signals. Only the first one has a gradient."""

    @staticmethod
    def forward(
        x: Tensor, constant: Tensor, operator: ScaledLaplacian, table: Table
    ) -> tuple[Tensor, Tensor]:
        width = x.shape[1]
        both = backend(x).terms(torch.cat([x, constant], 1), operator, table)
        first = both[..., :width]
        second = both[..., width:]
        if x.is_cuda:  # the kernels read columns of a wider matrix without a copy
            return first, second
        return first.contiguous(), second.contiguous()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, _, ctx.operator, ctx.table = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None, None, None]:
        return _Adjoint.apply(grad, ctx.operator, ctx.table), None, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        x: Tensor,
        constant: Tensor,
        operator: ScaledLaplacian,
        table: Table,
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        x = fold_columns(x, in_dims[0])
        constant = fold_columns(constant, in_dims[1])
        first, second = _PairedTerms.apply(x, constant, operator, table)
        batch = info.batch_size
        return (unfold_columns(first, batch), unfold_columns(second, batch)), (2, 2)


@fast_apply
class _Adjoint(Function):
    r"""The transposed map, again a recurrence (Clenshaw), because :math:`\hat A` is symmetric.

    .. math:: S_k = G_k + a_k \hat A S_{k+1} + b_k S_{k+1} + c_{k+1} S_{k+2}, \qquad
              S_{K+1} = S_{K+2} = 0

    The gradient of the input is :math:`S_0`. No term of the forward pass has to be kept.
    """

    @staticmethod
    def forward(grad: Tensor, operator: ScaledLaplacian, table: Table) -> Tensor:
        out: Tensor = backend(grad).adjoint(grad, operator, table)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        _, ctx.operator, ctx.table = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Terms.apply(grad, ctx.operator, ctx.table), None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, grad: Tensor, operator: ScaledLaplacian, table: Table
    ) -> tuple[Tensor, int]:
        result = _Adjoint.apply(fold_columns(grad, in_dims[0]), operator, table)
        return unfold_columns(result, info.batch_size), 1
