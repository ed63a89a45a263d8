"""Assemble rows from column blocks: the last stage of the work.

Blocks hold some columns of all rows, a store holds all columns of a row next to each other. One
pass over the finished blocks reorders them, one block of rows at a time.
"""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from nfgnn.spectral import mix_terms
from nfgnn.store.column_block import BlockReader
from nfgnn.store.file_format import DTYPES, write_json
from nfgnn.store.source import Report
from nfgnn.store.store_writer import StoreWriter
from nfgnn.store.workspace import Workspace

_SAVE_EVERY = 16  # blocks of rows


def open_writer(workspace: Workspace, folder: Path) -> StoreWriter:
    """Open the store for writing; an interrupted :func:`assemble_rows` is resumed."""
    checksums = []
    if _progress_file(workspace).is_file():
        try:
            checksums = json.loads(_progress_file(workspace).read_text())
        except ValueError:
            checksums = []  # damaged: all rows are assembled again
    plan = workspace.plan
    shape = (plan.num_rows, workspace.settings.K + 1, plan.num_features)
    return StoreWriter(folder, shape, workspace.settings.dtype, checksums)


def assemble_rows(workspace: Workspace, writer: StoreWriter, report: Report) -> None:
    """Write all rows, and verify the checksums of the blocks that are read."""
    total = workspace.plan.num_rows
    blocks = [BlockReader(workspace, block) for block in range(workspace.plan.blocks)]
    while writer.next_row < total:
        first = writer.next_row
        last = min(first + writer.block_rows, total)
        writer.write(_rows(workspace, blocks, first, last, piece=len(writer.checksums)))
        if len(writer.checksums) % _SAVE_EVERY == 0:
            writer.sync()
            write_json(_progress_file(workspace), writer.checksums)
        report("putting rows together", last, total)


def _progress_file(workspace: Workspace) -> Path:
    return workspace.folder / "assembled.json"


def _rows(
    workspace: Workspace, blocks: list[BlockReader], first: int, last: int, piece: int
) -> np.ndarray:
    """Return rows ``first`` to ``last`` as they are stored, ``[rows, K + 1, features]``."""
    plan = workspace.plan
    orders = workspace.settings.K + 1
    shape = (orders, last - first, plan.num_features)
    terms = np.empty(shape, DTYPES[workspace.block_dtype].numpy)
    for block, (left, right) in zip(blocks, pairwise(plan.bounds)):
        for k in range(orders):
            terms[k, :, left:right] = block.read(k, first, last, piece)
    if not workspace.needs_mixing:
        return np.ascontiguousarray(terms.transpose(1, 0, 2))
    mixed = mix_terms(torch.from_numpy(terms), workspace.basis, workspace.settings.K)
    return DTYPES[workspace.settings.dtype].encode(mixed.transpose(0, 1).contiguous())
