"""The sketch of the adjacency matrix as a part of stored rows: ``sketch.npy``.

It needs one pass over the edges, and no product. The file is complete before the first column block
is computed, so a workspace whose blocks are finished always has it.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from nfgnn.npyfile import NpyFile
from nfgnn.spectral import adjacency_sketch
from nfgnn.store.disk_laplacian import DiskLaplacian, RowBlock
from nfgnn.store.file_format import DTYPES
from nfgnn.store.new_node_terms import NewNodes
from nfgnn.store.source import Report
from nfgnn.store.workspace import Workspace

_PIECE_VALUES = 2**21  # of the sketch that are written at a time


def write_sketch(workspace: Workspace, report: Report) -> None:
    """Write the sketches of the stored rows, unless they exist or are not wanted."""
    columns = workspace.settings.sketch
    final = workspace.sketch_file
    if columns == 0 or final.is_file():
        return
    plan = workspace.plan
    dtype = DTYPES[workspace.settings.dtype]
    partial = final.with_suffix(".part")
    graph = DiskLaplacian(workspace.graph, plan.stream_entries)
    written = 0
    with NpyFile.create(partial, dtype.numpy, (plan.num_rows, columns)) as file:
        for block in graph.row_blocks():
            for sketch in _block_sketches(block, workspace.nodes, columns):
                file.write(written, dtype.encode(sketch))
                written += len(sketch)
            report("hashing neighbours", block.last, plan.num_nodes)
        file.finish()
    partial.replace(final)


def _block_sketches(block: RowBlock, nodes: Tensor, columns: int) -> Iterator[Tensor]:
    """Yield the sketches of the stored nodes in a block of rows, a few at a time."""
    first, last = np.searchsorted(nodes.numpy(), [block.first, block.last]).tolist()
    indptr = block.matrix.crow_indices().long()
    indices = block.matrix.col_indices()
    step = max(1, _PIECE_VALUES // columns)
    for start, stop in pairwise([*range(first, last, step), last]):
        chosen = nodes[start:stop]
        begin = indptr[chosen - block.first]
        counts = indptr[chosen - block.first + 1] - begin
        bounds = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        offset = torch.repeat_interleave(begin - bounds[:-1], counts)
        entries = torch.arange(int(bounds[-1])) + offset
        yield adjacency_sketch(bounds, indices[entries], columns, chosen)


def sketch_of_new_nodes(new: NewNodes, num_existing: int, columns: int) -> Tensor:
    """Return the sketches of new nodes in the extended graph, ``[m, columns]``."""
    source, target, _ = new.directed_edges(num_existing)
    nodes = torch.arange(num_existing, num_existing + new.x.shape[0])
    # Edges are sorted by source, and those of the existing nodes come first.
    bounds = torch.searchsorted(source, torch.cat([nodes, nodes[-1:] + 1]))
    return adjacency_sketch(bounds, target, columns, nodes)
