"""The sparse operator and the recurrence that runs a basis on it.

:func:`scaled_laplacian` turns ``edge_index`` into the operator once; :func:`polynomial_terms` gives the terms
:math:`p_k(\\tilde L) X` of any basis with K sparse products, and their gradient with K more. :class:`CSR` is the sparse
matrix underneath, shared with sparse node features.
"""

from nfgnn.propagate.csr import CSR
from nfgnn.propagate.lanczos import largest_eigenvalue
from nfgnn.propagate.laplacian import LambdaMax, ScaledLaplacian, scaled_laplacian
from nfgnn.propagate.recurrence import (
    each_term,
    mix_terms,
    mixing_matrix,
    neighbourhood_means,
    paired_terms,
    polynomial_terms,
    recurrence_terms,
)

__all__ = [
    "CSR",
    "LambdaMax",
    "ScaledLaplacian",
    "each_term",
    "largest_eigenvalue",
    "mix_terms",
    "mixing_matrix",
    "neighbourhood_means",
    "paired_terms",
    "polynomial_terms",
    "recurrence_terms",
    "scaled_laplacian",
]
