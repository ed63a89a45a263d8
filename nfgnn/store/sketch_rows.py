"""The sketch of the adjacency matrix as a part of stored rows: ``sketch.npy``.

It needs one pass over the edges, and no product.
"""

from collections.abc import Iterator

from torch import Tensor

from nfgnn.spectral import adjacency_sketch
from nfgnn.store.part_files import is_missing, stored_lists, write_part
from nfgnn.store.source import Report
from nfgnn.store.workspace import Workspace

_PIECE_VALUES = 2**21  # of the sketch that are written at a time


def write_sketch(workspace: Workspace, report: Report) -> None:
    """Write the sketches of the stored rows, unless they exist or are not wanted."""
    if is_missing(workspace, "sketch"):
        write_part(workspace, "sketch", _sketches(workspace, report))


def _sketches(workspace: Workspace, report: Report) -> Iterator[Tensor]:
    columns = workspace.settings.sketch
    for lists in stored_lists(workspace, "hashing neighbours", report):
        for piece in lists.pieces(max(1, _PIECE_VALUES // columns)):
            yield adjacency_sketch(piece.indptr, piece.indices, columns, piece.nodes)
