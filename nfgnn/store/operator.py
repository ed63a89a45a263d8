r""":math:`\hat A` from disk: whole, or a block of rows at a time.

A folder holds ``indptr.npy`` (int64), ``indices.npy`` (int32), ``scale.npy`` (:math:`D^{-1/2}`, float64) and, where
links have weights, ``weight.npy``. The entries of an unweighted graph are not stored: they are the products
:math:`d_i^{-1/2} d_j^{-1/2}`, made when they are needed and rounded as :class:`~nfgnn.spectral.ScaledLaplacian`
rounds them.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nfgnn.npyfile import NpyFile
from nfgnn.spectral import ScaledLaplacian
from nfgnn.spectral.laplacian import normalised

_ROWS = 2**20  # rows whose pointers or degrees are looked at in one go


def write_scale(folder: Path) -> None:
    """``scale.npy`` from ``indptr.npy``, unless it is there."""
    if (folder / "scale.npy").is_file():
        return
    with NpyFile.open(folder / "indptr.npy") as indptr:
        n = len(indptr) - 1
        with NpyFile.create(folder / "scale.part", np.float64, (n,)) as scale:
            for first in range(0, n, _ROWS):
                last = min(first + _ROWS, n)
                degree = torch.from_numpy(np.diff(indptr.read(first, last + 1))).double()
                scale.write(first, torch.where(degree > 0, degree.rsqrt(), 0.0).numpy())
            scale.finish()
    (folder / "scale.part").replace(folder / "scale.npy")


def whole(folder: Path, lambda_max: float, device: torch.device) -> ScaledLaplacian:
    """The operator in the memory of a device."""
    indptr, indices, scale = (
        _all(folder / f"{name}.npy") for name in ("indptr", "indices", "scale")
    )
    weight = _all(folder / "weight.npy") if (folder / "weight.npy").is_file() else None
    index = torch.int32 if indices.numel() < 2**31 else torch.int64
    return ScaledLaplacian(
        indptr.to(device, index),
        indices.to(device, index),
        None if weight is None else weight.to(device),
        scale.to(device),
        lambda_max,
    )


@dataclass(frozen=True)
class RowBlock:
    """Rows ``first`` to ``last`` of Â, as a sparse CSR tensor ``[last - first, n]`` in float32."""

    first: int
    last: int
    matrix: Tensor


def row_blocks(folder: Path, entries: int) -> Iterator[RowBlock]:
    """All rows in blocks of at most so many entries (a longer row is a block of its own)."""
    scale = _all(folder / "scale.npy")
    n, weighted = scale.numel(), (folder / "weight.npy").is_file()
    with ExitStack() as stack:
        names = ("indptr", "indices", "weight")[: 3 if weighted else 2]
        pointers, *files = (
            stack.enter_context(NpyFile.open(folder / f"{name}.npy")) for name in names
        )
        for chunk in range(0, n, _ROWS):
            bounds = pointers.read(chunk, min(chunk + _ROWS, n) + 1)
            for first, last in _cuts(bounds, entries):
                start, stop = int(bounds[first]), int(bounds[last])
                indptr = torch.from_numpy((bounds[first : last + 1] - start).astype(np.int32))
                indices, *weight = (torch.from_numpy(file.read(start, stop)) for file in files)
                own = scale[chunk + first : chunk + last]
                values = normalised(
                    indptr, indices, weight[0] if weight else None, own, scale
                ).float()
                shape = (last - first, n)
                matrix = torch.sparse_csr_tensor(
                    indptr, indices, values, shape, check_invariants=False
                )
                yield RowBlock(chunk + first, chunk + last, matrix)


def _cuts(bounds: np.ndarray, entries: int) -> Iterator[tuple[int, int]]:
    """Stretches of rows with at most so many entries."""
    first = 0
    while first < len(bounds) - 1:
        last = max(
            first + 1, int(np.searchsorted(bounds, bounds[first] + entries, side="right")) - 1
        )
        yield first, last
        first = last


def _all(path: Path) -> Tensor:
    with NpyFile.open(path) as file:
        return torch.from_numpy(file.read(0, len(file)))
