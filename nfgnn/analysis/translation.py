r"""The generalised translation operator: a kernel of the frequency domain, centred at a node.

.. math:: T_i g = \sqrt{n} \sum_l u_l\, u_l(i)\, \hat g(λ_l) = \sqrt{n}\; \hat g(L)\, δ_i

with eigenvectors :math:`u_l` of L (the paper's Definition 2). For a polynomial :math:`\hat g` of degree K the value at
a node more than K hops away is exactly zero, since :math:`\hat g(L)` reaches no further; this is the localisation that
the node-oriented filter is built on. No eigenvector is computed: the recurrence runs on :math:`δ_i`.
"""

import math

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

from nfgnn.spectral import Basis, Chebyshev, polynomial_terms, scaled_laplacian
from nfgnn.spectral.bases.base import Response


def translate(
    edge_index: Tensor,
    nodes: Tensor,
    kernel: Response | Tensor,
    K: int | None = None,
    num_nodes: int | None = None,
    basis: Basis | None = None,
) -> Tensor:
    r"""The kernel translated to every node of ``nodes``, float64 ``[n, len(nodes)]``.

    Args:
        edge_index: links in both directions, ``[2, 2E]``.
        nodes: centres i.
        kernel: the kernel as a function of :math:`t = λ - 1`, which is projected onto polynomials of degree ``K``; or
            the K + 1 coefficients of a polynomial in ``basis``.
        K: degree; needed for a function only.
        num_nodes: number of nodes; by default the largest index plus one.
        basis: of the coefficients. (default: Chebyshev)
    """
    basis = basis or Chebyshev()
    if not isinstance(kernel, Tensor):
        if K is None:
            raise ValueError("a kernel given as a function needs the degree K of its polynomial")
        kernel = basis.project(kernel, K)
    operator = scaled_laplacian(edge_index, num_nodes=num_nodes)
    nodes = torch.as_tensor(nodes).flatten()
    delta = torch.zeros(operator.num_nodes, len(nodes), dtype=torch.float64)
    delta[nodes, torch.arange(len(nodes))] = math.sqrt(operator.num_nodes)
    terms = polynomial_terms(delta, operator, basis, len(kernel) - 1)
    return torch.einsum("k,knc->nc", kernel.double(), terms)


def hop_distance(edge_index: Tensor, node: int, num_nodes: int) -> Tensor:
    """The distance of every node from ``node`` in hops, int64 ``[n]``; -1 where there is no path."""
    row, col = edge_index.cpu().numpy()
    matrix = sparse.csr_array(
        (np.ones(len(row), dtype=np.int8), (row, col)), shape=(num_nodes, num_nodes)
    )
    distance = dijkstra(matrix, indices=node, unweighted=True)
    return torch.from_numpy(np.where(np.isinf(distance), -1, distance).astype(np.int64))


def energy_by_hop(signal: Tensor, distance: Tensor, most: int) -> Tensor:
    """The share of a signal's energy at distance 0, 1, …, ``most``, float64 ``[most + 1]``: its localisation."""
    energy, near = signal.double().square(), (distance >= 0) & (distance <= most)
    return (
        torch.zeros(most + 1, dtype=torch.float64).index_add_(0, distance[near], energy[near])
        / energy.sum()
    )
