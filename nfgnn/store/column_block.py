"""One block of columns: the terms of all nodes, of which the selected rows are written.

A finished block is a folder such as ``block-0003`` with the files ``terms-00.npy`` to
``terms-K.npy``, each ``[rows, width]``, and their checksums. The folder gets this name only when it
is complete. A block may therefore be computed by any process, and any number of times.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nfgnn.errors import UserError
from nfgnn.npyfile import NpyFile
from nfgnn.spectral import ScaledLaplacian, each_term, recurrence_table
from nfgnn.store import disk_backend
from nfgnn.store.disk_laplacian import DiskLaplacian
from nfgnn.store.file_format import DTYPES, checksum, write_json
from nfgnn.store.workspace import Workspace

_CHECKSUMS = "checksums.json"


def compute_block(
    workspace: Workspace,
    block: int,
    attempt: str = "partial",
    on_term: Callable[[], None] = lambda: None,
) -> None:
    """Compute a block and write its terms, unless it is finished.

    Args:
        workspace: the job.
        block: number of the block.
        attempt: suffix of the temporary folder. With the streamed cut, a block resumes after the
            last term of the same attempt.
        on_term: called after every term.
    """
    final = workspace.block_folder(block)
    if final.is_dir():
        return
    partial = final.with_name(f"{final.name}.{attempt}")
    if workspace.plan.cut != "streamed":
        shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(exist_ok=True)
    checksums = _read_checksums(partial) if (partial / _CHECKSUMS).is_file() else {}
    for k, term in _terms(workspace, block, partial):
        checksums[str(k)] = _write_term(workspace, term, _term_file(partial, k))
        write_json(partial / _CHECKSUMS, checksums, sync=False)
        on_term()
    # Synchronising after every term would take longer than the terms.
    for k in range(workspace.settings.K + 1):
        with NpyFile.open(_term_file(partial, k)) as file:
            file.sync()
    write_json(partial / _CHECKSUMS, checksums)
    try:
        partial.rename(final)
    except OSError:
        if not final.is_dir():
            raise
        shutil.rmtree(partial)  # another attempt finished first


class BlockReader:
    """Read the terms of a finished block and verify their checksums."""

    def __init__(self, workspace: Workspace, block: int) -> None:
        self.folder = workspace.block_folder(block)
        self.checksums = _read_checksums(self.folder)

    def read(self, k: int, first: int, last: int, piece: int) -> np.ndarray:
        """Return rows ``first`` to ``last`` of term k, which are under checksum ``piece``."""
        path = _term_file(self.folder, k)
        with NpyFile.open(path) as file:
            rows = file.read(first, last)
        if checksum(rows) != self.checksums[str(k)][piece]:
            raise UserError(
                f"{path}: piece {piece} is damaged; delete {self.folder} and run the same command "
                "again to recompute this block"
            )
        return rows


def _terms(workspace: Workspace, block: int, partial: Path) -> Iterator[tuple[int, Tensor]]:
    """Yield k and term k of the block."""
    settings = workspace.settings
    plan = workspace.plan
    x = workspace.features_file(block)
    if plan.cut == "streamed":
        operator = DiskLaplacian(workspace.graph, plan.stream_entries)
        table = recurrence_table(workspace.basis, settings.K, settings.lambda_max)
        return disk_backend.each_term(x, operator, table, partial)
    device = torch.device(plan.device)
    with NpyFile.open(x) as file:
        features = torch.from_numpy(file.read_all()).to(device)
    loaded = _load_operator(workspace.graph, workspace.fingerprint, settings.lambda_max, device)
    return enumerate(each_term(features, loaded, workspace.basis, settings.K))


@lru_cache(maxsize=1)
def _load_operator(
    graph: Path, fingerprint: str, lambda_max: float, device: torch.device
) -> ScaledLaplacian:
    """Load the operator once for all blocks that this process computes.

    A folder may hold another graph later, which the fingerprint tells.
    """
    return DiskLaplacian(graph).load(lambda_max, device)


def _write_term(workspace: Workspace, term: Tensor, path: Path) -> list[str]:
    """Write the selected rows of a term and return their checksums."""
    plan = workspace.plan
    dtype = DTYPES[workspace.block_dtype]
    nodes = None
    if plan.num_rows < plan.num_nodes:
        nodes = workspace.nodes.to(term.device)
    checksums = []
    with NpyFile.create(path, dtype.numpy, (plan.num_rows, term.shape[1])) as file:
        for first in range(0, plan.num_rows, workspace.block_rows):
            last = min(first + workspace.block_rows, plan.num_rows)
            if nodes is None:
                rows = term[first:last]
            else:
                rows = term.index_select(0, nodes[first:last])
            stored = dtype.encode(rows)
            checksums.append(checksum(stored))
            file.write(first, stored)
    return checksums


def _read_checksums(folder: Path) -> dict[str, list[str]]:
    checksums: dict[str, list[str]] = json.loads((folder / _CHECKSUMS).read_text())
    return checksums


def _term_file(folder: Path, k: int) -> Path:
    return folder / f"terms-{k:02d}.npy"
