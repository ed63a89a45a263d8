"""Files with the parts of stored rows besides the terms, such as ``sketch.npy``.

Every part is complete before the first column block is computed, so a workspace whose blocks are
finished always has all of them.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from nfgnn.npyfile import NpyFile
from nfgnn.spectral import NeighbourLists
from nfgnn.store.disk_laplacian import DiskLaplacian, RowBlock
from nfgnn.store.file_format import DTYPES
from nfgnn.store.source import Report
from nfgnn.store.workspace import Workspace


def neighbour_lists(workspace: Workspace) -> Iterator[NeighbourLists]:
    """Yield the neighbours of all nodes, a block of rows at a time."""
    # Lists need about twice the memory of the entries that a product reads.
    entries = max(1, workspace.plan.stream_entries // 2)
    for block in DiskLaplacian(workspace.graph, entries).row_blocks():
        yield _lists(block)


def stored_lists(workspace: Workspace, stage: str, report: Report) -> Iterator[NeighbourLists]:
    """Yield the neighbours of the nodes whose rows are stored, and report the progress."""
    nodes = workspace.nodes
    for lists in neighbour_lists(workspace):
        first = int(lists.nodes[0])
        last = int(lists.nodes[-1]) + 1
        start, stop = np.searchsorted(nodes.numpy(), [first, last]).tolist()
        yield lists.select(nodes[start:stop] - first)
        report(stage, last, workspace.plan.num_nodes)


def write_part(workspace: Workspace, name: str, pieces: Iterable[Tensor]) -> None:
    """Write a part of the stored rows, given in pieces of consecutive rows, atomically."""
    dtype = DTYPES[workspace.settings.dtype]
    final = workspace.part_file(name)
    partial = final.with_suffix(".part")
    shape = (workspace.plan.num_rows, workspace.settings.parts.columns[name])
    written = 0
    with NpyFile.create(partial, dtype.numpy, shape) as file:
        for rows in pieces:
            file.write(written, dtype.encode(rows))
            written += len(rows)
        file.finish()
    partial.replace(final)


def is_missing(workspace: Workspace, name: str) -> bool:
    """Whether a part is wanted and not yet written."""
    wanted = name in workspace.settings.parts.columns
    return wanted and not workspace.part_file(name).is_file()


def _lists(block: RowBlock) -> NeighbourLists:
    nodes = torch.arange(block.first, block.last)
    return NeighbourLists.of(nodes, block.matrix.crow_indices(), block.matrix.col_indices())
