"""Convert features to one float32 matrix, dense or CSR, and refuse NaN and infinity.

Bag-of-words features are mostly zeros. They are stored as ``torch.sparse_csr``, which makes the
first layer several times faster and CiteSeer a few megabytes instead of fifty. All checks iterate
over blocks of rows, so that a memory-mapped matrix of a hundred gigabytes is never read into memory
at once.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from nfgnn.data.messages import first_line
from nfgnn.errors import UserError

SPARSE_DENSITY = 0.1
"""Matrices with at most this share of non-zeros are stored as CSR."""
SPARSE_SIZE = 2**18
"""Smaller matrices, by number of entries, are always dense."""
_CPU_DENSITY = 0.2
_BLOCK = 2**24  # entries checked at a time


def check_features(x: object, where: str) -> Tensor:
    """Return ``x`` as float32 [n, f], dense or ``torch.sparse_csr`` by its density.

    Args:
        x: a tensor of any layout, an array or a SciPy sparse matrix.
        where: the place that error messages name.
    """
    if sparse.issparse(x):
        try:
            return _choose_layout(_from_scipy(x), where)
        except UserError:
            raise
        except ValueError as error:
            reason = first_line(error)
            raise UserError(f"{where}: the sparse features are invalid: {reason}.") from None
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "biuf":
            raise UserError(f"{where}: the features have type {x.dtype}; they must be numbers.")
        x = torch.from_numpy(x if isinstance(x, np.memmap) else np.ascontiguousarray(x))
    if not isinstance(x, Tensor):
        raise UserError(
            f"{where}: the features are a {type(x).__name__}; "
            "a tensor or array [nodes, features] is required."
        )
    if x.dim() == 1:
        x = x[:, None]
    if x.dim() != 2:
        raise UserError(
            f"{where}: the features have shape {list(x.shape)}; [nodes, features] is required."
        )
    if x.is_complex():
        raise UserError(f"{where}: the features are complex; real numbers are required.")
    if x.is_quantized:
        raise UserError(f"{where}: the features are quantized; save x.dequantize() instead.")
    if x.layout != torch.strided:
        check_sparse(x, where)
    if x.layout not in (torch.strided, torch.sparse_csr):
        x = _to_csr(x.coalesce() if x.layout == torch.sparse_coo else x)
    return _choose_layout(x.detach().cpu().to(torch.float32), where)


def check_sparse(tensor: Tensor, where: str) -> None:
    """Refuse a sparse tensor whose indices are out of bounds, which torch would follow."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # CSR tensors are in beta
            _rebuild_with_checks(tensor)
    except RuntimeError as error:
        raise UserError(
            f"{where}: the sparse tensor is invalid: {first_line(error)}; create it again."
        ) from None


def _rebuild_with_checks(tensor: Tensor) -> None:
    """Construct the same tensor again, which does not copy, but checks its parts."""
    if tensor.layout == torch.sparse_coo:
        parts = (tensor._indices(), tensor._values())
        torch.sparse_coo_tensor(*parts, tensor.shape, check_invariants=True)
        return
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        indices = (tensor.crow_indices(), tensor.col_indices())
    else:
        indices = (tensor.ccol_indices(), tensor.row_indices())
    torch.sparse_compressed_tensor(
        *indices, tensor.values(), tensor.shape, layout=tensor.layout, check_invariants=True
    )


def degree_features(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Return features for a graph without any: a constant and log(1 + degree)."""
    degree = torch.bincount(edge_index[0], minlength=num_nodes).float()
    return torch.stack([torch.ones(num_nodes), degree.log1p()], dim=1)


def find_nonfinite(block: Any) -> tuple[int, int] | None:
    """Return row and column of the first NaN or infinity in a dense tensor or array.

    The sum is finite only if every term is, save for an overflow, which the exact test then clears.
    """
    block = torch.as_tensor(block)
    if bool(torch.isfinite(block.sum())) or bool(torch.isfinite(block).all()):
        return None
    row, column = (~torch.isfinite(block)).nonzero()[0].tolist()
    return row, column


def nonfinite_error(value: float, row: int, column: int, where: str) -> UserError:
    """Return the error for a feature that is not a finite number."""
    return UserError(
        f"{where}: the feature in row {row}, column {column} (counted from 0) is {value}; "
        "fill the gap or drop the column."
    )


def _choose_layout(x: Tensor, where: str) -> Tensor:
    """Refuse values that are not finite, and choose the layout by density."""
    is_sparse = x.layout == torch.sparse_csr
    nonzero = _check_csr(x, where) if is_sparse else _check_dense(x, where)
    size = x.shape[0] * x.shape[1]
    wants_sparse = size >= SPARSE_SIZE and nonzero <= SPARSE_DENSITY * size
    if wants_sparse == is_sparse:
        return x
    return _to_csr(x) if wants_sparse else x.to_dense()


def sparse_if_faster(x: Tensor) -> Tensor:
    """Return features as CSR if a CPU trains faster with them.

    On a CPU, CSR pays off at a higher density than on a GPU, because a step draws a random number
    for the dropout of every stored value.
    """
    if x.device.type != "cpu" or x.layout != torch.strided or x.numel() < SPARSE_SIZE:
        return x
    if int(torch.count_nonzero(x)) > _CPU_DENSITY * x.numel():
        return x
    return _to_csr(x)


def _check_csr(x: Tensor, where: str) -> int:
    """Return the number of non-zeros."""
    values = x.values()
    if not bool(torch.isfinite(values).all()):
        at = int((~torch.isfinite(values)).nonzero()[0])
        row = int(torch.searchsorted(x.crow_indices(), at, right=True)) - 1
        raise nonfinite_error(values[at].item(), row, int(x.col_indices()[at]), where)
    return int(torch.count_nonzero(values))


def _check_dense(x: Tensor, where: str) -> int:
    """Return the number of non-zeros."""
    nonzero = 0
    for start, block in _blocks(x):
        place = find_nonfinite(block)
        if place is not None:
            raise nonfinite_error(block[place].item(), start + place[0], place[1], where)
        nonzero += int(torch.count_nonzero(block))
    return nonzero


def _blocks(x: Tensor) -> Iterator[tuple[int, Tensor]]:
    step = max(1, _BLOCK // max(1, x.size(1)))
    for start in range(0, x.size(0), step):
        yield start, x[start : start + step]


def _from_scipy(x: object) -> Tensor:
    matrix = sparse.csr_array(x)
    matrix.check_format(full_check=True)  # sum_duplicates follows indices out of bounds
    matrix.sum_duplicates()
    if matrix.dtype.kind not in "biuf":
        raise UserError(f"the features have type {matrix.dtype}; real numbers are required.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # CSR tensors are in beta
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            size=matrix.shape,
        )


def _to_csr(x: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # CSR tensors are in beta
        return x.to_sparse_csr()
