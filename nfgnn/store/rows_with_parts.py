"""The rows of a store together with other parts than the terms."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nfgnn.store.file_format import DTYPES


@dataclass(frozen=True)
class RowsWithParts:
    """Terms and other parts of rows, a :class:`~nfgnn.store.RowSource`.

    Args:
        terms: returns the terms of some rows.
        parts: arrays of the other parts, in the order of :class:`~nfgnn.spectral.RowParts`.
        dtype: number type of these arrays, a name in ``DTYPES``.
    """

    terms: Callable[[Tensor], Tensor]
    parts: tuple[np.ndarray, ...]
    dtype: str

    def rows(self, index: Tensor) -> Tensor:
        """Return the terms of some rows, then their parts, in float32: ``[b, values]``."""
        decode = DTYPES[self.dtype].decode
        positions = index.cpu().numpy()
        found = [self.terms(index).flatten(1)]
        for part in self.parts:
            found.append(decode(np.array(part[positions])))
        return torch.cat(found, 1)
