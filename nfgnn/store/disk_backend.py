r"""The recurrence on disk, for terms and operators that do not fit into memory.

There are three implementations of the recurrence

.. math:: X_{k+1} = a_k \hat A X_k + b_k X_k + c_k X_{k-1},

which all run the same table of :math:`(a_k, b_k, c_k)`: :mod:`nfgnn.spectral.torch_backend` in
memory, :mod:`nfgnn.kernels.recurrence` on a GPU, and this one. It uses the ``step`` of the torch
backend on blocks of rows, which gives the same bits as all rows at once. It has no ``adjoint``,
because terms on disk are never differentiated.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nfgnn.npyfile import BufferedReader, NpyFile
from nfgnn.spectral import Table, recurrence_step
from nfgnn.store.disk_laplacian import DiskLaplacian


def each_term(
    x: Path, operator: DiskLaplacian, table: Table, scratch: Path
) -> Iterator[tuple[int, Tensor]]:
    """Yield k and X_k for k = 0 ... K, with one term in memory and its neighbours on disk.

    A term is valid until the next one is requested. If ``scratch`` holds terms of an interrupted
    call, the iteration resumes with the last of them.

    Args:
        x: file with X_0, ``[n, width]``.
        operator: Â on disk.
        table: rows (a, b, c) of the recurrence.
        scratch: folder for intermediate terms; they are deleted at the end.
    """
    files = [x]
    for k in range(1, len(table) + 1):
        files.append(scratch / f"state-{k:02d}.npy")
    start = max(k for k, file in enumerate(files) if file.is_file())
    with NpyFile.open(files[start]) as file:
        current = torch.from_numpy(file.read_all())
    yield start, current
    for k, (a, b, c) in enumerate(table[start:], start):
        partial = files[k + 1].with_suffix(".part")
        with (
            NpyFile.open(files[max(k - 1, 0)]) as previous_file,
            NpyFile.create(partial, np.float32, current.shape) as out,
        ):
            before = BufferedReader(previous_file)
            for rows in operator.row_blocks():
                previous = torch.from_numpy(before.read(rows.first, rows.last))
                own = current[rows.first : rows.last]
                recurrence_step(rows.matrix, current, a, b, previous, c, out=previous, own=own)
                out.write(rows.first, previous.numpy())
            out.finish()
        partial.replace(files[k + 1])
        if k > 1:
            files[k - 1].unlink(missing_ok=True)
        with NpyFile.open(files[k + 1]) as file:
            file.read(0, len(file), out=current.numpy())
        yield k + 1, current
    for file_of_term in files[1:]:
        file_of_term.unlink(missing_ok=True)
