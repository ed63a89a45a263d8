r"""Spectral mathematics on tensors: the scaled Laplacian, polynomial bases and the recurrence.

:func:`scaled_laplacian` turns ``edge_index`` into the operator. :func:`polynomial_terms` returns
the terms :math:`p_k(\tilde L) X` of a basis (:mod:`nfgnn.spectral.bases`) with K sparse products,
and their gradient with K more. :class:`CSR` is the sparse matrix of graphs and of sparse features.
:func:`adjacency_sketch` hashes the neighbours of nodes into a few columns, and
:func:`parts_of_graph` returns all that a row can hold besides its terms.
:mod:`nfgnn.spectral.neighbour_agreement` and :mod:`nfgnn.spectral.two_hop_hashing` compute parts in
blocks of columns.
:mod:`nfgnn.spectral.response` has the frequency responses that filters start from.
"""

from nfgnn.spectral.autograd import fast_apply, join_runs, transforming
from nfgnn.spectral.backend import (
    at_least_float32,
    sum_precision,
    triton_is_available,
    triton_supports,
)
from nfgnn.spectral.bases import (
    BASES,
    Basis,
    Bernstein,
    Chebyshev,
    Jacobi,
    Legendre,
    Monomial,
    Response,
    chebyshev_nodes,
    resolve_basis,
)
from nfgnn.spectral.csr import CSR
from nfgnn.spectral.edge_checks import (
    LambdaMax,
    check_edges,
    check_lambda_max,
    check_tensors,
)
from nfgnn.spectral.lanczos import largest_eigenvalue
from nfgnn.spectral.laplacian import (
    ScaledLaplacian,
    derived_laplacian,
    normalised,
    scaled_laplacian,
)
from nfgnn.spectral.neighbour_agreement import neighbour_cosine
from nfgnn.spectral.neighbour_hashing import adjacency_sketch
from nfgnn.spectral.neighbour_lists import NeighbourLists
from nfgnn.spectral.recurrence import (
    each_term,
    mix_terms,
    mixing_matrix,
    neighbourhood_means,
    paired_terms,
    polynomial_terms,
    recurrence_table,
    recurrence_terms,
)
from nfgnn.spectral.response import RESPONSES, initial_response
from nfgnn.spectral.row_parts import RowParts, log_degree, parts_of_graph
from nfgnn.spectral.torch_backend import Table
from nfgnn.spectral.torch_backend import step as recurrence_step
from nfgnn.spectral.traced import TracedLaplacian, mix
from nfgnn.spectral.two_hop_hashing import two_hop_sketch

__all__ = [
    "BASES",
    "CSR",
    "RESPONSES",
    "Basis",
    "Bernstein",
    "Chebyshev",
    "Jacobi",
    "LambdaMax",
    "Legendre",
    "Monomial",
    "NeighbourLists",
    "Response",
    "RowParts",
    "ScaledLaplacian",
    "Table",
    "TracedLaplacian",
    "adjacency_sketch",
    "at_least_float32",
    "chebyshev_nodes",
    "check_edges",
    "check_lambda_max",
    "check_tensors",
    "derived_laplacian",
    "each_term",
    "fast_apply",
    "initial_response",
    "join_runs",
    "largest_eigenvalue",
    "log_degree",
    "mix",
    "mix_terms",
    "mixing_matrix",
    "neighbour_cosine",
    "neighbourhood_means",
    "normalised",
    "paired_terms",
    "parts_of_graph",
    "polynomial_terms",
    "recurrence_step",
    "recurrence_table",
    "recurrence_terms",
    "resolve_basis",
    "scaled_laplacian",
    "sum_precision",
    "transforming",
    "triton_is_available",
    "triton_supports",
    "two_hop_sketch",
]
