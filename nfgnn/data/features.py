"""Features in whatever form → one float32 matrix, dense or CSR, without a NaN.

Bag-of-words features are mostly zeros; they stay (or become) ``torch.sparse_csr``, which makes the first
layer several times faster and CiteSeer a few megabytes instead of fifty. Everything here walks over blocks of
rows, so that a memory-mapped matrix of a hundred gigabytes is checked without being read into memory at once.
"""

import warnings
from collections.abc import Iterator

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from nfgnn.errors import UserError

#: At most this share of non-zeros is stored as CSR, if the matrix has at least ``SPARSE_SIZE`` entries.
SPARSE_DENSITY, SPARSE_SIZE = 0.1, 2**18
_BLOCK = 2**24  # entries looked at in one go


def check_features(x: object, where: str) -> Tensor:
    """Return ``x`` as float32 [n, f], dense or ``torch.sparse_csr`` by its density; refuse NaN and inf."""
    if sparse.issparse(x):
        return _compact(_from_scipy(x), where)
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "biuf":
            raise UserError(f"{where}: the features are of type {x.dtype}; numbers are needed.")
        x = torch.from_numpy(np.ascontiguousarray(x) if not isinstance(x, np.memmap) else x)
    if not isinstance(x, Tensor):
        raise UserError(
            f"{where}: the features are a {type(x).__name__}; a tensor or array [nodes, features] is needed."
        )
    if x.dim() == 1:
        x = x[:, None]
    if x.dim() != 2:
        raise UserError(
            f"{where}: the features have shape {list(x.shape)}; [nodes, features] is needed."
        )
    if x.is_complex():
        raise UserError(f"{where}: the features are complex numbers; real numbers are needed.")
    if x.layout not in (torch.strided, torch.sparse_csr):
        x = _quiet_csr(x.coalesce() if x.layout == torch.sparse_coo else x)
    return _compact(x.detach().cpu().to(torch.float32), where)


def _compact(x: Tensor, where: str) -> Tensor:
    """Check the values and choose the layout by density."""
    rows, columns = x.shape
    if x.layout == torch.sparse_csr:
        if not bool(torch.isfinite(x.values()).all()):
            at = int((~torch.isfinite(x.values())).nonzero()[0])
            row = int(torch.searchsorted(x.crow_indices(), at, right=True)) - 1
            _refuse_value(x.values()[at], row, int(x.col_indices()[at]), where)
        nonzero = int(torch.count_nonzero(x.values()))
    else:
        nonzero = 0
        for start, block in _blocks(x):
            # The sum is finite only if every term is (save for an overflow, which the exact look then
            # clears).
            if not bool(torch.isfinite(block.sum())) and not bool(torch.isfinite(block).all()):
                row, column = (~torch.isfinite(block)).nonzero()[0].tolist()
                _refuse_value(block[row, column], start + row, column, where)
            nonzero += int(torch.count_nonzero(block))
    low = rows * columns >= SPARSE_SIZE and nonzero <= SPARSE_DENSITY * rows * columns
    if low == (x.layout == torch.sparse_csr):
        return x
    return _quiet_csr(x) if low else x.to_dense()


def _blocks(x: Tensor) -> Iterator[tuple[int, Tensor]]:
    step = max(1, _BLOCK // max(1, x.size(1)))
    for start in range(0, x.size(0), step):
        yield start, x[start : start + step]


def _refuse_value(value: Tensor, row: int, column: int, where: str) -> None:
    raise UserError(
        f"{where}: the feature in row {row}, column {column} (counted from 0) is {value.item()}; "
        "fill the gap or drop the column."
    )


def _from_scipy(x: object) -> Tensor:
    matrix = sparse.csr_array(x)
    matrix.sum_duplicates()
    if matrix.dtype.kind not in "biuf":
        raise UserError(f"the features are of type {matrix.dtype}; real numbers are needed.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            size=matrix.shape,
        )


def _quiet_csr(x: Tensor) -> Tensor:
    """``to_sparse_csr`` without torch's notice that the layout is in beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return x.to_sparse_csr()


def degree_features(edge_index: Tensor, num_nodes: int) -> Tensor:
    """For a graph without features: a constant and log(1 + degree); both carry over to other graphs."""
    degree = torch.bincount(edge_index[0], minlength=num_nodes).float()
    return torch.stack([torch.ones(num_nodes), degree.log1p()], dim=1)
