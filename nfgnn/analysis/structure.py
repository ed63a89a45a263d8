"""Structure of a graph without labels and features: degrees, components, bipartiteness."""

from typing import Any

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from nfgnn.analysis.neighbourhood import adjacency_matrix, edge_array


def structure(edge_index: Tensor, num_nodes: int) -> dict[str, Any]:
    """Return plain numbers about the edges.

    - ``degree``: mean, median, largest; ``isolated``: number of nodes without edges.
    - ``components``: number of connected components, isolated nodes included;
      ``largest_component``: share of nodes in the largest one.
    - ``bipartite``: whether the graph has edges and every component with edges is bipartite.
      (Equivalently, frequency 2 is as frequent as frequency 0.)
    """
    edges = edge_array(edge_index, num_nodes)
    degree = np.bincount(edges[0], minlength=num_nodes)
    count, component = _components(edges, num_nodes)
    # In the double cover every edge leads to the other copy of the nodes. Exactly the bipartite
    # components fall apart into two.
    shift = np.array([[0], [num_nodes]], dtype=edges.dtype)
    cover = np.concatenate([edges + shift, edges + shift[::-1]], axis=1)
    cover_count, _ = _components(cover, 2 * num_nodes)
    return {
        "degree": {
            "mean": float(degree.mean()),
            "median": float(np.median(degree)),
            "largest": int(degree.max()),
        },
        "isolated": int((degree == 0).sum()),
        "components": count,
        "largest_component": float(np.bincount(component).max() / num_nodes),
        "bipartite": edges.size > 0 and cover_count == 2 * count,
    }


def degree_histogram(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Return the degrees that occur and the number of nodes with each, int64."""
    degree = torch.bincount(edge_index[0], minlength=num_nodes)
    degrees, counts = degree.unique(return_counts=True)
    return degrees, counts


def _components(edges: np.ndarray, n: int) -> tuple[int, np.ndarray]:
    matrix = adjacency_matrix(edges, n, np.int8)
    count, component = connected_components(matrix, directed=False)
    return int(count), component
