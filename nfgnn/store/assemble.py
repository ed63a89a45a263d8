"""Blocks of columns → rows that lie together: one pass over the finished blocks, piece of rows by piece of rows."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from nfgnn.errors import UserError
from nfgnn.npyfile import NpyFile
from nfgnn.spectral import mix_terms
from nfgnn.store.block import term_file
from nfgnn.store.job import Job, block_folder
from nfgnn.store.manifest import DTYPES, checksum, write_json
from nfgnn.store.source import Report
from nfgnn.store.store import as_stored

_SAVE_EVERY = 16  # pieces, after which a restart goes on


def assemble(job: Job, target: Path, report: Report) -> list[str]:
    """Write ``terms.npy``; every piece that is read is checked. Returns the checksums of its blocks."""
    place = job.work / "assembled.json"
    sums: list[str] = json.loads(place.read_text()) if place.is_file() else []
    total = job.plan.num_rows
    expected = [
        json.loads((block_folder(job.work, b) / "checksums.json").read_text())
        for b in range(job.plan.blocks)
    ]
    shape = (total, job.settings.K + 1, job.plan.num_features)
    with NpyFile.create(target, DTYPES[job.settings.dtype][1], shape) as out:
        for piece in range(len(sums), -(-total // job.block_rows)):
            first, last = piece * job.block_rows, min((piece + 1) * job.block_rows, total)
            rows = _rows(job, first, last, piece, expected)
            out.write(first, rows)
            sums.append(checksum([rows.reshape(-1).view(np.uint8).data]))
            if len(sums) % _SAVE_EVERY == 0:
                out.sync()
                write_json(place, sums)
            report("putting rows together", last, total)
        out.finish()
    return sums or [checksum([])]


def _rows(
    job: Job, first: int, last: int, piece: int, expected: list[dict[str, list[str]]]
) -> np.ndarray:
    """Rows ``first`` to ``last`` as they are stored, ``[rows, K + 1, features]``."""
    orders, kind = job.settings.K + 1, DTYPES[job.work_dtype][1]
    terms = np.empty((orders, last - first, job.plan.num_features), kind)
    for block, (left, right) in enumerate(pairwise(job.plan.bounds)):
        for k in range(orders):
            path = term_file(block_folder(job.work, block), k)
            with NpyFile.open(path) as file:
                found = file.read(first, last)
            if checksum([found.reshape(-1).view(np.uint8).data]) != expected[block][str(k)][piece]:
                raise UserError(
                    f"{path}: piece {piece} is damaged; delete {path.parent} and run the same command again, it then "
                    "computes this block anew"
                )
            terms[k, :, left:right] = found
    if not job.mixes:
        return np.ascontiguousarray(terms.transpose(1, 0, 2))
    mixed = (
        mix_terms(torch.from_numpy(terms), job.basis, job.settings.K).transpose(0, 1).contiguous()
    )
    return as_stored(mixed, job.settings.dtype)
