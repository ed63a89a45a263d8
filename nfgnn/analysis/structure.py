"""What a graph is without labels and features: degrees, components, whether it is bipartite."""

from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from torch import Tensor


def structure(edge_index: Tensor, num_nodes: int) -> dict[str, Any]:
    """Plain numbers about the links.

    - ``degree``: mean, median, largest; ``isolated``: nodes without links.
    - ``components``: connected parts, isolated nodes among them; ``largest_component``: share of nodes in the largest.
    - ``bipartite``: whether there is a component with links, and every such one has two sides without links inside.
      (Equally: frequency 2 is as frequent as frequency 0.)
    """
    row, col = edge_index.cpu().numpy().astype(np.int32 if num_nodes < 2**30 else np.int64)
    degree = np.bincount(row, minlength=num_nodes)
    count, labels = _components(row, col, num_nodes)
    # In the double cover, in which every link leads to the other sheet, just the bipartite components fall in two.
    doubled = _components(
        np.concatenate([row, row + num_nodes]),
        np.concatenate([col + num_nodes, col]),
        2 * num_nodes,
    )[0]
    return {
        "degree": {
            "mean": float(degree.mean()),
            "median": float(np.median(degree)),
            "largest": int(degree.max()),
        },
        "isolated": int((degree == 0).sum()),
        "components": count,
        "largest_component": float(np.bincount(labels).max() / num_nodes),
        "bipartite": bool(len(row) and doubled == 2 * count),
    }


def degree_histogram(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Degrees that occur and how many nodes have each, int64."""
    degrees, counts = torch.bincount(edge_index[0], minlength=num_nodes).unique(return_counts=True)
    return degrees, counts


def _components(row: np.ndarray, col: np.ndarray, n: int) -> tuple[int, np.ndarray]:
    matrix = sparse.csr_array((np.ones(len(row), dtype=np.int8), (row, col)), shape=(n, n))
    count, labels = connected_components(matrix, directed=False)
    return int(count), labels
