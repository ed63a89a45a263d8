"""The sketch of two-hop neighbours as a part of stored rows: ``two_hop.npy``.

Columns are computed in blocks of ``plan.part_width``. Every block needs two passes over the edges:
one for the sketches of all nodes, one that adds them up. ``two_hop-0000.npy`` and so on hold the
finished blocks until all rows are scaled.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nfgnn.npyfile import NpyFile
from nfgnn.spectral.two_hop_hashing import (
    inverse_norms,
    scaled_to_length_one,
    sketch_columns,
    two_hop_columns,
)
from nfgnn.store.part_files import is_missing, neighbour_lists, stored_lists, write_part
from nfgnn.store.source import Report
from nfgnn.store.workspace import Workspace

_PIECE_VALUES = 2**21  # of the sketch that are scaled at a time
_STAGE = "hashing two-hop neighbours"


def write_two_hop(workspace: Workspace, report: Report) -> None:
    """Write the two-hop sketches of the stored rows, unless they exist or are not wanted."""
    if not is_missing(workspace, "two_hop"):
        return
    columns = workspace.settings.two_hop
    bounds = [*range(0, columns, workspace.plan.part_width), columns]
    files = [workspace.part_file(f"two_hop-{i:04d}") for i in range(len(bounds) - 1)]
    if not all(file.is_file() for file in files):
        norms = [inverse_norms(lists, columns) for lists in neighbour_lists(workspace)]
        scale = torch.cat(norms)
        for file, (first, last) in zip(files, pairwise(bounds)):
            if not file.is_file():
                _write_columns(workspace, file, scale, first, last, report)
    write_part(workspace, "two_hop", _scaled_rows(workspace, files))
    for file in files:
        file.unlink()


def _write_columns(
    workspace: Workspace, path: Path, scale: Tensor, first: int, last: int, report: Report
) -> None:
    """Write some columns of the sums of sketches, not yet scaled, in float32."""
    columns = workspace.settings.two_hop
    plan = workspace.plan
    one_hop = torch.empty(plan.num_nodes, last - first, dtype=torch.float64)
    for lists in neighbour_lists(workspace):
        some = slice(int(lists.nodes[0]), int(lists.nodes[-1]) + 1)
        one_hop[some] = sketch_columns(lists, scale[some], columns, first, last)
    partial = path.with_suffix(".part")
    written = 0
    with NpyFile.create(partial, np.float32, (plan.num_rows, last - first)) as file:
        for lists in stored_lists(workspace, _STAGE, report):
            rows = two_hop_columns(lists, one_hop, scale, columns, first)
            file.write(written, rows.float().numpy())
            written += len(rows)
        file.finish()
    partial.replace(path)


def _scaled_rows(workspace: Workspace, files: list[Path]) -> Iterator[Tensor]:
    """Yield rows of length 1 from the files of their columns."""
    step = max(1, _PIECE_VALUES // workspace.settings.two_hop)
    total = workspace.plan.num_rows
    for first, last in pairwise([*range(0, total, step), total]):
        parts = []
        for path in files:
            with NpyFile.open(path) as file:
                parts.append(torch.from_numpy(file.read(first, last)))
        yield scaled_to_length_one(torch.cat(parts, 1))
