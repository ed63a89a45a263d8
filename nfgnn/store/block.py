"""One block of columns: the recurrence over all nodes, and the kept rows of every term on disk.

A finished block is a folder ``block-0003`` with ``terms-00.npy`` … ``terms-K.npy``, each ``[rows, width]``, and the
checksums of their pieces. It takes its name only when it is whole, so whoever computes it, and however often, there is
either a right block or none.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nfgnn.npyfile import NpyFile
from nfgnn.spectral import ScaledLaplacian, each_term
from nfgnn.spectral.recurrence import folded_table
from nfgnn.spectral.torch_backend import step
from nfgnn.store import operator
from nfgnn.store.job import Job, block_folder, column_file
from nfgnn.store.manifest import DTYPES, checksum, write_json
from nfgnn.store.store import as_stored

Tick = Callable[[], None]


def term_file(folder: Path, k: int) -> Path:
    return folder / f"terms-{k:02d}.npy"


def compute_block(
    job: Job, block: int, attempt: str = "partial", tick: Tick = lambda: None
) -> None:
    """Compute a block unless it is there.

    Args:
        job: the work.
        block: its number.
        attempt: ending of the folder it is made in; a streamed block goes on where the same attempt stopped.
        tick: called after every term.
    """
    final = block_folder(job.work, block)
    if final.is_dir():
        return
    partial = final.with_name(f"{final.name}.{attempt}")
    if job.plan.cut != "streamed":
        shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(exist_ok=True)
    checksums = json.loads(p.read_text()) if (p := partial / "checksums.json").is_file() else {}
    for k, term in _terms(job, block, partial):
        checksums[str(k)] = _keep(job, term, term_file(partial, k))
        write_json(partial / "checksums.json", checksums, wait=False)
        tick()
    for k in range(
        job.settings.K + 1
    ):  # once: waiting for the disk after every term would take longer than the terms
        with NpyFile.open(term_file(partial, k)) as file:
            file.sync()
    write_json(partial / "checksums.json", checksums)
    try:
        partial.rename(final)
    except OSError:
        if not final.is_dir():
            raise
        shutil.rmtree(partial)  # another attempt was faster


def _terms(job: Job, block: int, partial: Path) -> Iterator[tuple[int, Tensor]]:
    if job.plan.cut == "streamed":
        return _streamed(job, block, partial)
    device = torch.device(job.plan.device)
    with NpyFile.open(column_file(job.work, block)) as file:
        x = torch.from_numpy(file.read(0, len(file))).to(device)
    settings = job.settings
    return enumerate(
        each_term(x, _operator(job.graph, settings.lambda_max, device), job.basis, settings.K)
    )


@lru_cache(maxsize=1)
def _operator(graph: Path, lambda_max: float, device: torch.device) -> ScaledLaplacian:
    return operator.whole(graph, lambda_max, device)


def _streamed(job: Job, block: int, partial: Path) -> Iterator[tuple[int, Tensor]]:
    """The same steps, of which only the term that is multiplied is in memory: the others lie on disk."""
    states = [column_file(job.work, block)] + [
        partial / f"state-{k:02d}.npy" for k in range(1, job.settings.K + 1)
    ]
    k = max(
        i for i, path in enumerate(states) if path.is_file()
    )  # where an earlier attempt stopped
    with NpyFile.open(states[k]) as file:
        shape = file.shape
        x = torch.from_numpy(file.read(0, len(file)))
    yield k, x
    table = folded_table(job.basis, job.settings.K, job.settings.lambda_max)
    for a, b, c in table[k:]:
        part = states[k + 1].with_suffix(".part")
        with (
            NpyFile.open(states[max(k - 1, 0)]) as previous,
            NpyFile.create(part, np.float32, shape) as out,
        ):
            for rows in operator.row_blocks(job.graph, job.plan.stream_entries):
                add = torch.from_numpy(previous.read(rows.first, rows.last))
                step(rows.matrix, x, a, b, add, c, out=add, own=x[rows.first : rows.last])
                out.write(rows.first, add.numpy())
            out.finish()
        part.replace(states[k + 1])
        if k > 1:
            states[k - 1].unlink(missing_ok=True)
        k += 1
        with NpyFile.open(states[k]) as file:
            file.read(0, len(file), out=x.numpy())
        yield k, x
    for path in states[1:]:
        path.unlink(missing_ok=True)


def _keep(job: Job, term: Tensor, path: Path) -> list[str]:
    """Write the kept rows of a term; returns the checksums of its pieces."""
    dtype = job.work_dtype
    nodes = None if job.plan.num_rows == job.plan.num_nodes else job.nodes.to(term.device)
    sums = []
    with NpyFile.create(path, DTYPES[dtype][1], (job.plan.num_rows, term.shape[1])) as file:
        for first in range(0, job.plan.num_rows, job.block_rows):
            last = min(first + job.block_rows, job.plan.num_rows)
            piece = term[first:last] if nodes is None else term.index_select(0, nodes[first:last])
            stored = as_stored(piece, dtype)
            sums.append(checksum([stored.reshape(-1).view(np.uint8).data]))
            file.write(first, stored)
    return sums
