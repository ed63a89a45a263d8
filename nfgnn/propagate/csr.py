"""Sparse matrices in compressed rows, for the graph and for sparse features alike."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.propagate.cache import TensorCache
from nfgnn.propagate.columns import fold, unfold

_CACHE = TensorCache()
_INT32_MAX = 2**31 - 1


class CSR:
    """A constant sparse matrix with fast products from the left, itself and transposed.

    Indices are int32 where they fit, because both the CPU's and the GPU's libraries read them fastest. The transpose
    is made once, on first use.
    """

    def __init__(self, indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> None:
        index = torch.int32 if max(*shape, values.numel()) <= _INT32_MAX else torch.int64
        self.indptr, self.indices, self.values = indptr.to(index), indices.to(index), values
        self.shape = shape
        self._transpose: tuple[CSR, Tensor] | None = None
        self._tensor: Tensor | None = None

    @classmethod
    def from_sorted(cls, row: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> "CSR":
        """From coordinates that are sorted by row."""
        counts = torch.bincount(row, minlength=shape[0])
        return cls(torch.cat([counts.new_zeros(1), counts.cumsum(0)]), column, values, shape)

    @classmethod
    def from_tensor(cls, x: Tensor) -> "CSR":
        """From a torch sparse tensor; the same tensor gives the same object again."""

        def make() -> CSR:
            csr = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
            return cls(csr.crow_indices(), csr.col_indices(), csr.values(), (x.shape[0], x.shape[1]))

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
        return self._transposed()[0]

    def _transposed(self) -> tuple["CSR", Tensor]:
        """The transpose, and the order in which it holds this matrix' values."""
        if self._transpose is None:
            counts = self.indptr.diff().long()
            row = torch.repeat_interleave(torch.arange(self.shape[0], device=counts.device), counts)
            order = torch.argsort(self.indices, stable=True)
            shape = (self.shape[1], self.shape[0])
            matrix = CSR.from_sorted(self.indices[order].long(), row[order], self.values[order], shape)
            self._transpose = (matrix, order)
        return self._transpose

    def with_values(self, values: Tensor) -> "CSR":
        """The same pattern under other values; a transpose already made is reused."""
        copy = CSR(self.indptr, self.indices, values, self.shape)
        transposed, order = self._transposed()
        pattern = CSR(transposed.indptr, transposed.indices, values[order], transposed.shape)
        copy._transpose = (pattern, order)
        return copy

    def __matmul__(self, x: Tensor) -> Tensor:
        """The product with a dense matrix, differentiable in that matrix."""
        return _Product.apply(x, self)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"CSR(shape={self.shape}, nnz={self.values.numel()}, dtype={self.values.dtype})"


class _Product(Function):
    """Y = S X with dX = Sᵀ dY; a batch of X is one product over all its columns."""

    @staticmethod
    def forward(x: Tensor, matrix: CSR) -> Tensor:
        return matrix.tensor @ x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, CSR], output: Tensor) -> None:
        ctx.matrix = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Product.apply(grad.contiguous(), ctx.matrix.transpose), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, None], x: Tensor, matrix: CSR) -> tuple[Tensor, int]:
        return unfold(_Product.apply(fold(x, in_dims[0]), matrix), info.batch_size), 1
