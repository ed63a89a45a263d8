"""Sort the edges of a large graph into a CSR matrix in the memory of a device.

A GPU sorts billions of edges in seconds, where the external sort needs many minutes. Sorting takes
several times the memory of what is sorted, and torch sorts at most 2³¹ - 1 values at a time.
Therefore one range of rows is sorted after the other.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from nfgnn.spectral import ScaledLaplacian

_SORTED_AT_A_TIME = 2**28
_READ_AT_A_TIME = 2**26


def csr_on_device(
    edges: Tensor,
    num_nodes: int,
    lambda_max: float = 2.0,
    entries: int = _SORTED_AT_A_TIME,
) -> ScaledLaplacian:
    """Return the operator of the undirected graph with these edges, without edge weights.

    Both directions of every edge are taken. Repeated edges and self-loops are dropped.

    Args:
        edges: int32 ``[edges, 2]`` on the device.
        num_nodes: number of nodes.
        lambda_max: the assumed largest eigenvalue of the Laplacian.
        entries: how many entries are sorted at a time. A row with more is sorted by itself.
    """
    listed = _listed_degrees(edges, num_nodes)
    # A few bytes per entry more than needed, where edges repeat. A copy would need twice as many.
    indices = torch.empty(2 * len(edges), dtype=torch.int32, device=edges.device)
    degree = torch.zeros(num_nodes, dtype=torch.int64, device=edges.device)
    end = 0
    for first, last in _row_ranges(listed, entries):
        keys = _sorted_keys(edges, first, last, num_nodes)
        start = end
        end += len(keys)
        row = torch.div(keys, num_nodes, rounding_mode="floor")
        degree[first:last] = torch.bincount(row, minlength=last - first)
        indices[start:end] = keys.remainder_(num_nodes)
    indptr = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
    if end < 2**31:
        indptr = indptr.int()
    scale = torch.where(degree > 0, degree.double().rsqrt(), 0.0)
    return ScaledLaplacian(indptr, indices[:end], None, scale, lambda_max)


def _listed_degrees(edges: Tensor, num_nodes: int) -> Tensor:
    """Return how often every node is listed, an upper bound of its degree."""
    total = torch.zeros(num_nodes, dtype=torch.int64, device=edges.device)
    for piece in edges.split(_READ_AT_A_TIME):
        total += torch.bincount(piece.reshape(-1), minlength=num_nodes)
    return total


def _row_ranges(degree: Tensor, entries: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with at most ``entries`` entries, or one row with more."""
    ends = degree.cumsum(0)
    first = 0
    done = 0
    while first < len(degree):
        limit = int(torch.searchsorted(ends, ends.new_tensor(done + entries), right=True))
        last = max(first + 1, limit)
        yield first, last
        first = last
        done = int(ends[last - 1])


def _sorted_keys(edges: Tensor, first: int, last: int, num_nodes: int) -> Tensor:
    """Return ``(row - first) * num_nodes + column`` of some rows, ascending and unique."""
    found = []
    for piece in edges.split(_READ_AT_A_TIME):
        for row, column in ((piece[:, 0], piece[:, 1]), (piece[:, 1], piece[:, 0])):
            chosen = ((row >= first) & (row < last) & (row != column)).nonzero().squeeze(1)
            # 64 bits before the product, which exceeds 32.
            found.append((row[chosen].long() - first) * num_nodes + column[chosen])
    keys = torch.cat(found)
    found.clear()
    unique: Tensor = torch.unique_consecutive(keys.sort().values)
    return unique
