r"""The generalised translation operator: a kernel of the frequency domain, centred at a node.

.. math:: T_i g = \sqrt{n} \sum_l u_l\, u_l(i)\, \hat g(λ_l) = \sqrt{n}\; \hat g(L)\, δ_i

with eigenvectors :math:`u_l` of L (Definition 2 of the paper). For a polynomial :math:`\hat g` of
degree K the value at a node more than K hops away is exactly zero, since :math:`\hat g(L)` reaches
no further. The node-oriented filter is built on this localisation. No eigenvector is computed: the
recurrence runs on :math:`δ_i`.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

from nfgnn.analysis.neighbourhood import adjacency_matrix, edge_array
from nfgnn.spectral import Basis, Chebyshev, polynomial_terms, scaled_laplacian

Response = Callable[[Tensor], Tensor]
"""A frequency response as a function of :math:`t = λ - 1`."""


def translate(
    edge_index: Tensor,
    nodes: Tensor,
    kernel: Response | Tensor,
    K: int | None = None,
    num_nodes: int | None = None,
    basis: Basis | None = None,
) -> Tensor:
    r"""Return the kernel translated to every node of ``nodes``, float64 ``[n, len(nodes)]``.

    Args:
        edge_index: edges in both directions, ``[2, 2E]``.
        nodes: centres i.
        kernel: the kernel as a function of :math:`t = λ - 1`, which is projected onto polynomials
            of degree ``K``; or the K + 1 coefficients of a polynomial in ``basis``.
        K: degree; only needed for a function.
        num_nodes: number of nodes; by default the largest index plus one.
        basis: basis of the coefficients. (default: Chebyshev)
    """
    basis = basis or Chebyshev()
    if not isinstance(kernel, Tensor):
        if K is None:
            raise ValueError("a kernel passed as a function also needs the polynomial degree K")
        kernel = basis.project(kernel, K)
    operator = scaled_laplacian(edge_index, num_nodes=num_nodes)
    nodes = torch.as_tensor(nodes).flatten()
    delta = torch.zeros(operator.num_nodes, len(nodes), dtype=torch.float64)
    delta[nodes, torch.arange(len(nodes))] = math.sqrt(operator.num_nodes)
    terms = polynomial_terms(delta, operator, basis, len(kernel) - 1)
    return torch.einsum("k,knc->nc", kernel.double(), terms)


def hop_distance(edge_index: Tensor, node: int, num_nodes: int) -> Tensor:
    """Return the distance of every node from ``node`` in hops, int64 ``[n]``; -1 without a path."""
    matrix = adjacency_matrix(edge_array(edge_index, num_nodes), num_nodes, np.int8)
    distance = dijkstra(matrix, indices=node, unweighted=True)
    distance[np.isinf(distance)] = -1
    return torch.from_numpy(distance.astype(np.int64))


def energy_by_hop(signal: Tensor, distance: Tensor, most: int) -> Tensor:
    """Return the share of a signal's energy at distance 0, 1, …, ``most``, float64."""
    energy = signal.double().square()
    near = (distance >= 0) & (distance <= most)
    by_hop = torch.zeros(most + 1, dtype=torch.float64)
    by_hop.index_add_(0, distance[near], energy[near])
    return by_hop / energy.sum()
