r"""The normalised adjacency matrix :math:`\hat A = D^{-1/2} A D^{-1/2}` on disk."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nfgnn.npyfile import BufferedReader, NpyFile
from nfgnn.spectral import ScaledLaplacian, normalised

_ROWS = 2**20  # rows whose pointers or degrees are read at a time


@dataclass(frozen=True)
class RowBlock:
    """Rows ``first`` to ``last`` of Â as a sparse CSR tensor ``[last - first, n]`` in float32."""

    first: int
    last: int
    matrix: Tensor


@dataclass(frozen=True)
class DiskLaplacian:
    r"""A :class:`~nfgnn.spectral.ScaledLaplacian` on disk, read at once or in blocks of rows.

    The folder holds ``indptr.npy`` (int64), ``indices.npy`` (int32), ``scale.npy``
    (:math:`D^{-1/2}`, float64) and, for weighted graphs, ``weight.npy``. The values of an
    unweighted graph are products :math:`d_i^{-1/2} d_j^{-1/2}`, which are computed when they are
    needed and rounded as in memory. Many products read them from ``values.npy`` instead (float32).

    Args:
        folder: where the files are.
        block_entries: entries that :meth:`row_blocks` reads at a time.
    """

    folder: Path
    block_entries: int = 2**22

    def write_scale(self) -> None:
        """Write ``scale.npy`` from the degrees, unless it exists."""
        if self._file("scale").is_file():
            return
        partial = self.folder / "scale.part"
        with NpyFile.open(self._file("indptr")) as indptr:
            n = len(indptr) - 1
            with NpyFile.create(partial, np.float64, (n,)) as scale:
                for first in range(0, n, _ROWS):
                    last = min(first + _ROWS, n)
                    degree = self._degrees(indptr.read(first, last + 1))
                    scale.write(first, torch.where(degree > 0, degree.rsqrt(), 0.0).numpy())
                scale.finish()
        partial.replace(self._file("scale"))

    def _degrees(self, bounds: np.ndarray) -> Tensor:
        """Return the degrees of some rows in float64, given the pointers of the rows."""
        if not self._weighted:
            return torch.from_numpy(np.diff(bounds)).double()
        degrees = []
        for first, last in _row_ranges(bounds, self.block_entries):
            offsets = torch.from_numpy(bounds[first : last + 1] - bounds[first])
            weight = self._read("weight", int(bounds[first]), int(bounds[last]))
            # Rounds as in memory, where a sum does not depend on the other rows either.
            degrees.append(torch.segment_reduce(weight, "sum", offsets=offsets, initial=0.0))
        return torch.cat(degrees)

    def load(self, lambda_max: float, device: torch.device) -> ScaledLaplacian:
        """Read the whole operator into the memory of a device."""
        indices = self._read("indices")
        pointer_type = torch.int32 if indices.numel() < 2**31 else torch.int64
        # Indices of 32 bits halve the memory, but MKL wants both arrays of the same type.
        index_type = pointer_type if device.type == "cpu" else torch.int32
        return ScaledLaplacian(
            self._read("indptr").to(device, pointer_type),
            indices.to(device, index_type),
            self._read("weight").to(device) if self._weighted else None,
            self._read("scale").to(device),
            lambda_max,
        )

    def write_values(self) -> None:
        """Write ``values.npy`` for products that stream the operator, unless it exists."""
        if self._file("values").is_file():
            return
        partial = self.folder / "values.part"
        with NpyFile.open(self._file("indices")) as indices:
            shape = indices.shape
        written = 0
        with NpyFile.create(partial, np.float32, shape) as file:
            for rows in self.row_blocks():
                values = rows.matrix.values().numpy()
                file.write(written, values)
                written += len(values)
            file.finish()
        partial.replace(self._file("values"))

    def row_blocks(self) -> Iterator[RowBlock]:
        """Yield all rows in blocks of at most ``block_entries`` entries.

        A row with more entries is a block of its own. A block is valid until the next one is
        requested, because all of them are read into the same buffers.
        """
        stored = self._file("values").is_file()
        scale = torch.empty(0, dtype=torch.float64) if stored else self._read("scale")
        with ExitStack() as files:
            pointers = files.enter_context(NpyFile.open(self._file("indptr")))
            columns = BufferedReader(files.enter_context(NpyFile.open(self._file("indices"))))
            if stored:
                entries = BufferedReader(files.enter_context(NpyFile.open(self._file("values"))))
            n = len(pointers) - 1
            for chunk in range(0, n, _ROWS):
                bounds = pointers.read(chunk, min(chunk + _ROWS, n) + 1)
                for first, last in _row_ranges(bounds, self.block_entries):
                    start = int(bounds[first])
                    stop = int(bounds[last])
                    indptr = torch.from_numpy((bounds[first : last + 1] - start).astype(np.int32))
                    indices = torch.from_numpy(columns.read(start, stop))
                    if stored:
                        values = torch.from_numpy(entries.read(start, stop))
                    else:
                        weight = self._read("weight", start, stop) if self._weighted else None
                        row_scale = scale[chunk + first : chunk + last]
                        values = normalised(indptr, indices, weight, row_scale, scale).float()
                    matrix = torch.sparse_csr_tensor(
                        indptr, indices, values, (last - first, n), check_invariants=False
                    )
                    yield RowBlock(chunk + first, chunk + last, matrix)

    @property
    def _weighted(self) -> bool:
        return self._file("weight").is_file()

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.npy"

    def _read(self, name: str, first: int = 0, last: int | None = None) -> Tensor:
        with NpyFile.open(self._file(name)) as file:
            return torch.from_numpy(file.read(first, len(file) if last is None else last))


def _row_ranges(bounds: np.ndarray, entries: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with at most ``entries`` entries, given the pointers of the rows."""
    first = 0
    while first < len(bounds) - 1:
        limit = np.searchsorted(bounds, bounds[first] + entries, side="right")
        last = max(first + 1, int(limit) - 1)
        yield first, last
        first = last
