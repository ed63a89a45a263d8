"""The mean cosine of a node with its neighbours as a part of stored rows: ``agreement.npy``.

It is a sum over the columns of the features, so they are read ``plan.part_width`` at a time. Every
such block needs one pass over the edges.
"""

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

from nfgnn.npyfile import NpyFile
from nfgnn.spectral.neighbour_agreement import cosine_sums
from nfgnn.store.part_files import is_missing, stored_lists, write_part
from nfgnn.store.source import Report
from nfgnn.store.workspace import Workspace

_READ_VALUES = 2**21  # of the features that are read at a time
_STAGE = "comparing neighbours"


def write_agreement(workspace: Workspace, report: Report) -> None:
    """Write the mean cosines of the stored rows, unless they exist or are not wanted.

    The feature blocks must exist.
    """
    if not is_missing(workspace, "agreement"):
        return
    sums = torch.zeros(workspace.plan.num_rows, dtype=torch.float64)
    counts = torch.ones_like(sums)
    inverse = _inverse_lengths(workspace)
    for unit in _unit_columns(workspace, inverse):
        first = 0
        for lists in stored_lists(workspace, _STAGE, report):
            last = first + len(lists.nodes)
            sums[first:last] += cosine_sums(lists, unit)
            counts[first:last] = lists.counts.clamp(min=1).double()
            first = last
    write_part(workspace, "agreement", [(sums / counts)[:, None].float()])


def _inverse_lengths(workspace: Workspace) -> Tensor:
    """Return one over the lengths of the scaled features of all nodes, 0 for features of zeros."""
    squares = torch.zeros(workspace.plan.num_nodes, dtype=torch.float64)
    for block in range(workspace.plan.blocks):
        for first, rows in _feature_rows(workspace, block):
            squares[first : first + len(rows)] += rows.double().square().sum(1)
    return torch.where(squares > 0, squares.rsqrt(), 0.0)


def _unit_columns(workspace: Workspace, inverse: Tensor) -> Iterator[Tensor]:
    """Yield blocks of columns of the features, with rows of length 1, float64 ``[n, w]``."""
    plan = workspace.plan
    for block, (left, right) in enumerate(pairwise(plan.bounds)):
        width = right - left
        for start, stop in pairwise([*range(0, width, plan.part_width), width]):
            unit = torch.empty(plan.num_nodes, stop - start, dtype=torch.float64)
            for first, rows in _feature_rows(workspace, block):
                last = first + len(rows)
                unit[first:last] = rows[:, start:stop] * inverse[first:last, None]
            yield unit


def _feature_rows(workspace: Workspace, block: int) -> Iterator[tuple[int, Tensor]]:
    """Yield the scaled features of a column block in pieces, with the first node of each."""
    with NpyFile.open(workspace.features_file(block)) as file:
        step = max(1, _READ_VALUES // file.shape[1])
        for first in range(0, len(file), step):
            yield first, torch.from_numpy(file.read(first, min(first + step, len(file))))
