"""The sparse operator and the recurrence that runs a basis on it.

:func:`scaled_laplacian` turns ``edge_index`` into the operator once; :func:`polynomial_terms` gives the terms
:math:`p_k(\\tilde L) X` of any basis with K sparse products, and their gradient with K more. :class:`CSR` is the sparse
matrix underneath, shared with sparse node features.
"""

from nfgnn.spectral.bases import (
    BASES,
    RESPONSES,
    Basis,
    Bernstein,
    Chebyshev,
    Jacobi,
    Legendre,
    Monomial,
    Response,
    chebyshev_nodes,
    initial_response,
    resolve_basis,
)
from nfgnn.spectral.csr import CSR
from nfgnn.spectral.lanczos import largest_eigenvalue
from nfgnn.spectral.laplacian import LambdaMax, ScaledLaplacian, normalised, scaled_laplacian
from nfgnn.spectral.recurrence import (
    Table,
    each_term,
    folded_table,
    mix_terms,
    mixing_matrix,
    neighbourhood_means,
    paired_terms,
    polynomial_terms,
    recurrence_terms,
)
from nfgnn.spectral.torch_backend import step

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
    "Response",
    "ScaledLaplacian",
    "Table",
    "chebyshev_nodes",
    "each_term",
    "folded_table",
    "initial_response",
    "largest_eigenvalue",
    "mix_terms",
    "mixing_matrix",
    "neighbourhood_means",
    "normalised",
    "paired_terms",
    "polynomial_terms",
    "recurrence_terms",
    "resolve_basis",
    "scaled_laplacian",
    "step",
]
