"""Sparse matrices in compressed rows, for the graph and for sparse features alike."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.spectral.backend import backend
from nfgnn.spectral.columns import fold, unfold
from nfgnn.spectral.fast_apply import quick
from nfgnn.tensor_cache import TensorCache

_CACHE = TensorCache()
_INT32_MAX = 2**31 - 1


class CSR:
    """A constant sparse matrix with fast products from the left, itself and transposed.

    Indices are int32 where they fit, because both the CPU's and the GPU's libraries read them fastest. The transpose
    is made once, on first use; of a symmetric matrix, whose rows are sorted, it is the matrix itself.
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
        # Converted only where needed: inside a transformation even a conversion to the same type would wrap them.
        self.indptr = indptr if indptr.dtype == index else indptr.to(index)
        self.indices = indices if indices.dtype == index else indices.to(index)
        self.values = values
        self.shape, self.varying, self.symmetric = shape, varying, symmetric
        self._transpose: tuple[CSR, Tensor] | None = None
        self._tensor: Tensor | None = None

    @classmethod
    def from_sorted(
        cls, row: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]
    ) -> "CSR":
        """From coordinates that are sorted by row."""
        counts = torch.bincount(row, minlength=shape[0])
        return cls(torch.cat([counts.new_zeros(1), counts.cumsum(0)]), column, values, shape)

    @classmethod
    def from_tensor(cls, x: Tensor) -> "CSR":
        """From a torch sparse tensor; the same tensor gives the same object again."""

        def make() -> CSR:
            csr = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
            return cls(
                csr.crow_indices(), csr.col_indices(), csr.values(), (x.shape[0], x.shape[1])
            )

        return _CACHE.lookup((x,), None, make)

    @property
    def tensor(self) -> Tensor:
        """The matrix as torch's own sparse CSR tensor, sharing memory."""
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
        return (
            transposed.with_values(self.values.index_select(0, order))
            if self.varying
            else transposed
        )

    def _transposed(self) -> tuple["CSR", Tensor]:
        """The transpose (where values vary: its pattern), and the order in which it holds this matrix' values."""
        if self._transpose is None:
            counts = self.indptr.diff().long()
            row = torch.repeat_interleave(torch.arange(self.shape[0], device=counts.device), counts)
            order = torch.argsort(self.indices, stable=True)
            shape = (self.shape[1], self.shape[0])
            matrix = CSR.from_sorted(
                self.indices[order].long(), row[order], self.values[order], shape
            )
            self._transpose = (matrix, order)
        return self._transpose

    def with_values(self, values: Tensor) -> "CSR":
        """The same pattern under other values, which may be a batch of them under ``vmap``."""
        copy = CSR(self.indptr, self.indices, values, self.shape, varying=True)
        copy._transpose = self._transposed()
        return copy

    def __matmul__(self, x: Tensor) -> Tensor:
        """The product with a dense matrix, differentiable in that matrix."""
        return _Product.apply(x, self.values, self)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"CSR(shape={self.shape}, nnz={self.values.numel()}, dtype={self.values.dtype})"


@quick
class _Product(Function):
    """Y = S X with dX = Sᵀ dY. A batch of X is one product over all its columns; a batch of values is one each."""

    @staticmethod
    def forward(x: Tensor, values: Tensor, matrix: CSR) -> Tensor:
        out: Tensor = backend(x).matmul(matrix.with_values(values) if matrix.varying else matrix, x)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, CSR], output: Tensor) -> None:
        _, values, ctx.matrix = inputs
        ctx.save_for_backward(values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        if not ctx.matrix.varying:
            return ctx.matrix.transpose @ grad.contiguous(), None, None
        transpose, order = ctx.matrix._transposed()
        values = ctx.saved_tensors[0].index_select(0, order)
        return transpose.with_values(values) @ grad.contiguous(), None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, int | None, None],
        x: Tensor,
        values: Tensor,
        matrix: CSR,
    ) -> tuple[Tensor, int]:
        if in_dims[1] is None:
            return unfold(_Product.apply(fold(x, in_dims[0]), values, matrix), info.batch_size), 1
        x = (
            x.unsqueeze(1).expand(-1, info.batch_size, -1)
            if in_dims[0] is None
            else x.movedim(in_dims[0], 1)
        )
        return _MemberProduct.apply(x, values.movedim(in_dims[1], 0), matrix), 1


@quick
class _MemberProduct(Function):
    """The products of a batch of values with a batch of matrices ``[rows, batch, columns]``; gradient for the
    latter."""

    @staticmethod
    def forward(x: Tensor, values: Tensor, matrix: CSR) -> Tensor:
        out: Tensor = backend(x).matmul_members(matrix, values, x)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, CSR], output: Tensor) -> None:
        _, values, ctx.matrix = inputs
        ctx.save_for_backward(values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        transpose, order = ctx.matrix._transposed()
        (values,) = ctx.saved_tensors
        return _MemberProduct.apply(grad, values[:, order], transpose), None, None
