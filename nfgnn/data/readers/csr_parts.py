"""CSR matrices from files: checked before SciPy uses them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from nfgnn.errors import UserError


def csr_from_parts(parts: Sequence[np.ndarray], where: str) -> Any:
    """Build a CSR matrix from its data, indices, indptr and shape.

    SciPy reads and writes out of bounds if these contradict each other.

    Args:
        parts: the four arrays.
        where: the place that error messages name.
    """
    values, indices, indptr, shape = parts
    flat = all(part.ndim == 1 for part in parts)
    whole = all(part.dtype.kind in "iu" for part in (indices, indptr, shape))
    if not flat or not whole or len(shape) != 2 or len(indptr) == 0:
        raise UserError(
            f"{where}: data, indices, indptr and shape of a CSR matrix must be one-dimensional, "
            "the last three of whole numbers."
        )
    num_rows, num_columns = shape.tolist()
    valid = (
        len(indptr) == num_rows + 1
        and len(values) == len(indices)
        and indptr[0] == 0
        and indptr[-1] == len(indices)
        and bool((indptr[1:] >= indptr[:-1]).all())
        and (len(indices) == 0 or (indices.min() >= 0 and indices.max() < num_columns))
    )
    if not valid:
        raise UserError(
            f"{where}: data, indices, indptr and shape do not describe a CSR matrix; "
            "create the file again."
        )
    return sparse.csr_array((values, indices, indptr), shape=(num_rows, num_columns))


def compact_csr(matrix: Any) -> Any:
    """Return a float32 CSR matrix without duplicate entries and stored zeros."""
    matrix = sparse.csr_array(matrix)
    matrix.sum_duplicates()
    matrix = matrix.astype(np.float32)
    matrix.eliminate_zeros()
    return matrix
