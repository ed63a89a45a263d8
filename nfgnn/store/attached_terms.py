r"""Compute the terms of new nodes from the stored terms of their neighbours.

New nodes change little: the degrees of their neighbours C, and so the entries of Â in their rows
and columns. With :math:`\sigma_u = \sqrt{d_u / d'_u}` for the old and the new degree of u in C, and
1 elsewhere, the operator of the extended graph is

.. math:: \hat A' = \begin{pmatrix} Σ \hat A Σ & B \\ B^\top & N \end{pmatrix}

where B holds the edges between C and the new nodes, and N those between new nodes. Let t be the
stored terms and y those of the extended graph. The difference between :math:`Σ^{-1} y` and t obeys
the recurrence of the basis itself, with sources on C and on the new nodes only:

.. math:: e_0 = \begin{pmatrix} (σ^{-1} - 1)\, x_C \\ x_{new} \end{pmatrix}, \qquad
          s_j = a_j \begin{pmatrix} -\hat A\, (1 - σ^2)\, t_j \\ B^\top σ\, t_j \end{pmatrix}

With :math:`\ell_i = T_i(\hat A')\,\mathbb 1_v`, the Chebyshev polynomials on the indicator of a new
node v, the terms of v are combinations of :math:`\langle \ell_i, e_0 \rangle` and
:math:`\langle \ell_i, s_j \rangle`. These need :math:`\ell_i` on C and on the new nodes
only (:mod:`nfgnn.store.indicator_walks`), and of the existing graph the terms of C.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from nfgnn.spectral import Basis, mixing_matrix, recurrence_table
from nfgnn.store.extended_graph import ExtendedGraph
from nfgnn.store.indicator_walks import indicator_walks
from nfgnn.store.new_node_terms import Edges, Features, NewNodes, terms_of_new_nodes
from nfgnn.store.stored_graph import StoredGraph

StoredTerms = Callable[[np.ndarray], Tensor]
"""Returns the terms of nodes of the existing graph, ``[nodes, K + 1, features]``."""

Table = tuple[tuple[float, float, float], ...]
MAX_ATTACHED = 16
"""New nodes that are attached together; their walks may meet anywhere."""


def attached_terms(
    graph: StoredGraph,
    stored: StoredTerms,
    new: NewNodes,
    basis: Basis,
    K: int,
    lambda_max: float = 2.0,
    tolerance: float = 1e-10,
) -> Tensor:
    r"""Return the rows of new nodes in the terms :math:`p_k(\tilde L) X` of the extended graph.

    More than :data:`MAX_ATTACHED` new nodes are computed from the features and edges of their whole
    K-hop neighbourhood (:func:`~nfgnn.store.terms_of_new_nodes`), which costs less then.

    Args:
        graph: the existing graph.
        stored: returns stored terms.
        new: the new nodes, with scaled features.
        basis, K, lambda_max: how the stored terms were computed.
        tolerance: decides which edges around a new node are read and which are estimated, see
            :func:`~nfgnn.store.indicator_walks.indicator_walks`. With 0 the result is exact.
            Otherwise, all entries of the graph are read once, before the first result.

    Returns:
        Terms ``[m, K + 1, features]`` in float32.
    """
    mixing = mixing_matrix(basis, K, torch.float64, torch.device("cpu"))
    if new.x.shape[0] > MAX_ATTACHED:
        return terms_of_new_nodes(
            WithoutLoops(graph),
            stored_features(stored, basis, K),
            new,
            basis,
            K,
            graph.self_loops,
            lambda_max,
        )
    table = tuple(recurrence_table(basis, K, lambda_max))
    extended = ExtendedGraph(graph, new)
    existing = _unmixed(stored(extended.attached), mixing).numpy()
    terms = torch.from_numpy(_terms(extended, existing, new.x.double().numpy(), table, tolerance))
    if mixing is not None:
        terms = mixing @ terms
    return terms.float()


def stored_features(stored: StoredTerms, basis: Basis, K: int) -> Features:
    """Return a function for the scaled features of nodes, which stored terms contain."""
    mixing = mixing_matrix(basis, K, torch.float64, torch.device("cpu"))

    def features(nodes: Tensor) -> Tensor:
        return _unmixed(stored(nodes.numpy()), mixing)[:, 0].float()

    return features


def _unmixed(terms: Tensor, mixing: Tensor | None) -> Tensor:
    """Return the terms of the recurrence of a basis in float64."""
    terms = terms.double()
    return terms if mixing is None else torch.linalg.solve(mixing, terms)


def _terms(
    extended: ExtendedGraph, existing: np.ndarray, x: np.ndarray, table: Table, tolerance: float
) -> np.ndarray:
    """Return the terms of the new nodes, ``[m, K + 1, features]``, before mixing."""
    K = len(table)
    on_old, on_new = indicator_walks(extended, K, tolerance)
    factor = extended.factor

    # Â' ℓ_i from the recurrence of the Chebyshev polynomials, then the part that Â Σ ℓ_i is of it.
    product = on_old[1:].copy()
    product[1:] = 0.5 * (on_old[2:] + on_old[:-2])
    from_new = np.stack([extended.edges @ vector for vector in on_new[:-1]]) if K else product
    through_old = (product - from_new) / factor[:, None]
    sources = factor[:, None] * from_new - (1 - factor[:, None] ** 2) * through_old
    start = np.einsum("iuv,uf->vif", (1 - factor)[:, None] * on_old, existing[:, 0])
    start += np.einsum("iwv,wf->vif", on_new, x)

    coefficients = _associated_polynomials(table)
    found: np.ndarray = coefficients[0] @ start
    if K:
        a = np.array([row[0] for row in table])
        weights = np.einsum("j,jki,iuv->vkju", a, coefficients[1:, :, :-1], sources)
        flat = weights.reshape(len(x), K + 1, -1)
        found += flat @ existing[:, :-1].transpose(1, 0, 2).reshape(-1, x.shape[1])
    return found


class WithoutLoops:
    """The edges of a stored graph that are not self-loops, as tensors."""

    def __init__(self, graph: StoredGraph) -> None:
        self.graph = graph
        self.num_nodes = graph.num_nodes

    def edges(self, nodes: Tensor) -> Edges:
        found = self.graph.neighbours(nodes.numpy())
        keep = found.target != nodes.numpy()[found.row]
        parts = (found.row[keep], found.target[keep], found.weight[keep])
        return Edges(*map(torch.from_numpy, parts))

    def degree(self, nodes: Tensor) -> Tensor:
        degree = self.graph.degree(nodes.numpy())
        return torch.from_numpy(degree - float(self.graph.self_loops))


@lru_cache(maxsize=64)
def _associated_polynomials(table: Table) -> np.ndarray:
    """Return what the recurrence makes of a source: ``[j, k, i]``, coefficients of T_i.

    A source of one at order j gives this polynomial at order k.
    """
    K = len(table)
    found = np.zeros((K + 1, K + 1, K + 1))
    for j in range(K + 1):
        found[j, j, 0] = 1.0
        for k in range(j, K):
            a, b, c = table[k]
            current = found[j, k]
            before = found[j, k - 1] if k > j else np.zeros(K + 1)
            # t T_0 = T_1 and t T_i = (T_{i-1} + T_{i+1}) / 2
            times = np.zeros(K + 1)
            times[:-1] += 0.5 * current[1:]
            times[1:] += 0.5 * current[:-1]
            times[1:2] += 0.5 * current[0]
            found[j, k + 1] = a * times + b * current + c * before
    return found
