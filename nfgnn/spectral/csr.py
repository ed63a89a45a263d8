"""Sparse matrices in compressed rows, for graphs and for sparse features."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.spectral.autograd import fast_apply, fold_columns, unfold_columns
from nfgnn.spectral.backend import backend
from nfgnn.tensor_cache import TensorCache, constants

_CACHE = TensorCache()
_INT32_MAX = 2**31 - 1


class CSR:
    """A constant sparse matrix with fast products S X and Sᵀ X.

    Indices are int32 where they fit, because MKL and cuSPARSE read them fastest. The transpose is
    built on first use. That of a symmetric matrix is the matrix itself.

    Args:
        indptr, indices, values: the compressed rows.
        shape: number of rows and columns.
        varying: whether other matrices of the same pattern have other values, see
            :meth:`with_values`.
        symmetric: whether the matrix equals its transpose and its rows are sorted.
    """

    def __init__(
        self,
        indptr: Tensor,
        indices: Tensor,
        values: Tensor,
        shape: tuple[int, int],
        varying: bool = False,
        symmetric: bool = False,
    ) -> None:
        index = torch.int32 if max(*shape, indices.numel()) <= _INT32_MAX else torch.int64
        # Under a transformation, even a conversion to the same type would wrap the tensors.
        self.indptr = indptr if indptr.dtype == index else indptr.to(index)
        self.indices = indices if indices.dtype == index else indices.to(index)
        self.values = values
        self.shape = shape
        self.varying = varying
        self.symmetric = symmetric
        self._transpose: tuple[CSR, Tensor] | None = None
        self._tensor: Tensor | None = None
        self._scaled: dict[float, CSR] = {}

    @classmethod
    def from_sorted(
        cls, row: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]
    ) -> "CSR":
        """Return the matrix with these entries, which are sorted by row."""
        counts = torch.bincount(row, minlength=shape[0])
        indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return cls(indptr, column, values, shape)

    @classmethod
    def from_tensor(cls, x: Tensor) -> "CSR":
        """Return a sparse torch tensor as a matrix, cached for the life of the tensor."""

        def make() -> CSR:
            csr = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
            shape = (x.shape[0], x.shape[1])
            # The values are a view of x, which would keep x and so this entry alive.
            values = csr.values().detach()
            return cls(csr.crow_indices(), csr.col_indices(), values, shape)

        return _CACHE.lookup((x,), None, make)

    def __getstate__(self) -> dict[str, Any]:
        # torch cannot copy sparse tensors. This one is made again on first use.
        return {**vars(self), "_tensor": None}

    @property
    def tensor(self) -> Tensor:
        """The matrix as a sparse CSR tensor of torch, which shares its memory."""
        if self._tensor is None:
            self._tensor = torch.sparse_csr_tensor(
                self.indptr, self.indices, self.values, self.shape, check_invariants=False
            )
        return self._tensor

    @property
    def transpose(self) -> "CSR":
        if self.symmetric:
            return self
        transposed, order = self._transposed()
        if not self.varying:
            return transposed
        return transposed.with_values(self.values.index_select(0, order))

    def _transposed(self) -> tuple["CSR", Tensor]:
        """Return the transpose and the order of this matrix' values in it.

        Of the transpose of a varying matrix only the pattern is meaningful.
        """
        if self._transpose is None:
            with constants():
                self._transpose = self._sorted_by_column()
        return self._transpose

    def _sorted_by_column(self) -> tuple["CSR", Tensor]:
        counts = self.indptr.diff().long()
        row = torch.repeat_interleave(torch.arange(self.shape[0], device=counts.device), counts)
        order = torch.argsort(self.indices, stable=True)
        column = self.indices[order].long()
        shape = (self.shape[1], self.shape[0])
        return CSR.from_sorted(column, row[order], self.values[order], shape), order

    def with_values(self, values: Tensor) -> "CSR":
        """Return a matrix of the same pattern with other values, which ``vmap`` may batch."""
        copy = CSR(self.indptr, self.indices, values, self.shape, varying=True)
        copy._transpose = self._transposed()  # of one pattern, so it is only sorted once
        return copy

    def scaled(self, factor: float) -> "CSR":
        """Return the matrix times a number. It is built once for every number."""
        if factor == 1:
            return self
        if factor not in self._scaled:
            with constants():
                values = factor * self.values
            scaled = CSR(self.indptr, self.indices, values, self.shape, symmetric=self.symmetric)
            self._scaled[factor] = scaled
        return self._scaled[factor]

    def __matmul__(self, x: Tensor) -> Tensor:
        """Return the product with a dense matrix, differentiable in that matrix."""
        if torch.compiler.is_compiling():
            # A compiler cannot trace the product, so it breaks the graph here.
            compiled: Tensor = torch.compiler.disable(_product)(x, self)
            return compiled
        return _product(x, self)

    def __repr__(self) -> str:
        return f"CSR(shape={self.shape}, nnz={self.values.numel()}, dtype={self.values.dtype})"


def _product(x: Tensor, matrix: CSR) -> Tensor:
    product: Tensor = _Product.apply(x, matrix.values, matrix)
    return product


@fast_apply
class _Product(Function):
    """Y = S X with dX = Sᵀ dY.

    Under ``vmap``, a batch of X is one product over the columns of all; a batch of values is one
    product for each.
    """

    @staticmethod
    def forward(x: Tensor, values: Tensor, matrix: CSR) -> Tensor:
        if matrix.varying:
            matrix = matrix.with_values(values)
        out: Tensor = backend(x).matmul(matrix, x)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, CSR], output: Tensor) -> None:
        _, values, ctx.matrix = inputs
        ctx.save_for_backward(values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        # A contiguous gradient would be copied under vmap: backends change the layout if need be.
        if not ctx.matrix.varying:
            return ctx.matrix.transpose @ grad, None, None
        transpose, order = ctx.matrix._transposed()
        values = ctx.saved_tensors[0].index_select(0, order)
        return transpose.with_values(values) @ grad, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, int | None, None],
        x: Tensor,
        values: Tensor,
        matrix: CSR,
    ) -> tuple[Tensor, int]:
        x_dim, values_dim, _ = in_dims
        if values_dim is None:
            product = _Product.apply(fold_columns(x, x_dim), values, matrix)
            return unfold_columns(product, info.batch_size), 1
        if x_dim is None:
            x = x.unsqueeze(1).expand(-1, info.batch_size, -1)
        else:
            x = x.movedim(x_dim, 1)
        return _BatchedProduct.apply(x, values.movedim(values_dim, 0), matrix), 1


@fast_apply
class _BatchedProduct(Function):
    """Products of a batch of values with a batch of matrices ``[rows, batch, columns]``."""

    @staticmethod
    def forward(x: Tensor, values: Tensor, matrix: CSR) -> Tensor:
        out: Tensor = backend(x).batched_matmul(matrix, values, x)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, CSR], output: Tensor) -> None:
        _, values, ctx.matrix = inputs
        ctx.save_for_backward(values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        transpose, order = ctx.matrix._transposed()
        (values,) = ctx.saved_tensors
        return _BatchedProduct.apply(grad, values[:, order], transpose), None, None
