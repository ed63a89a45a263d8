"""A CSR matrix in files, read in blocks of rows and checked block by block."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from nfgnn.data.features import SPARSE_DENSITY, SPARSE_SIZE, find_nonfinite, nonfinite_error
from nfgnn.data.readers.csr_parts import csr_from_parts
from nfgnn.errors import UserError

ReadRange = Callable[[str, int, int], np.ndarray]
"""Read a range of one of the parts ``data``, ``indices`` and ``indptr``."""


@dataclass(frozen=True)
class CsrBlocks:
    """A CSR matrix of which only a block of rows is in memory.

    Args:
        read: reads a range of a part.
        shape: rows and columns.
        num_entries: number of stored entries.
        where: the place that error messages name.
    """

    read: ReadRange
    shape: tuple[int, int]
    num_entries: int
    where: str

    @property
    def is_sparse(self) -> bool:
        """Whether :func:`nfgnn.data.features.check_features` would keep the matrix sparse."""
        size = self.shape[0] * self.shape[1]
        return size >= SPARSE_SIZE and self.num_entries <= SPARSE_DENSITY * size

    def dense_rows(self, rows: int) -> Iterator[np.ndarray]:
        """Yield the matrix in dense blocks of at most ``rows`` rows, float32 and finite."""
        n, f = self.shape
        for first in range(0, n, rows):
            last = min(first + rows, n)
            indptr = self._pointers(first, last)
            entries = (int(indptr[0]), int(indptr[-1]))
            parts = [
                self.read("data", *entries),
                self.read("indices", *entries),
                indptr - indptr[0],
                np.array([last - first, f]),
            ]
            matrix = csr_from_parts(parts, self.where)
            # Equal entries are added up before they are rounded, as in memory.
            matrix.sum_duplicates()
            block: np.ndarray = sparse.csr_array(matrix, dtype=np.float32).toarray()
            place = find_nonfinite(block)
            if place is not None:
                raise nonfinite_error(block[place], first + place[0], place[1], self.where)
            yield block

    def edges(self, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield rows and columns of the entries in blocks of at most ``size``."""
        for first in range(0, self.shape[0], size):
            last = min(first + size, self.shape[0])
            indptr = self._pointers(first, last)
            for start in range(int(indptr[0]), int(indptr[-1]), size):
                stop = min(start + size, int(indptr[-1]))
                entry = np.arange(start, stop)
                row = first + np.searchsorted(indptr, entry, side="right") - 1
                yield row, self.read("indices", start, stop)

    def _pointers(self, first: int, last: int) -> np.ndarray:
        """Return the pointers of some rows after checking them."""
        indptr = self.read("indptr", first, last + 1)
        valid = bool((indptr[1:] >= indptr[:-1]).all())
        valid &= indptr[0] >= 0 and indptr[-1] <= self.num_entries
        valid &= first > 0 or indptr[0] == 0
        valid &= last < self.shape[0] or indptr[-1] == self.num_entries
        if not valid:
            raise UserError(
                f"{self.where}: data, indices, indptr and shape do not describe a CSR matrix; "
                "create the file again."
            )
        return indptr
