"""Polynomial bases: maths only.

A basis is a table of three numbers per order; :class:`Basis` says what the table means and on which operator it is
evaluated. Start reading there, then at :class:`Chebyshev`, the paper's basis. A new basis is one small file here and
one line in ``BASES``; layers, models, plots and tests then know it by name. :mod:`nfgnn.spectral.response` has the
frequency responses that filters start from.
"""

from functools import lru_cache

from nfgnn.spectral.bases.base import Basis, Response, chebyshev_nodes
from nfgnn.spectral.bases.bernstein import Bernstein
from nfgnn.spectral.bases.chebyshev import Chebyshev
from nfgnn.spectral.bases.jacobi import Jacobi, Legendre
from nfgnn.spectral.bases.monomial import Monomial
from nfgnn.spectral.response import RESPONSES, initial_response

BASES: dict[str, type[Basis]] = {
    "chebyshev": Chebyshev,
    "monomial": Monomial,
    "bernstein": Bernstein,
    "legendre": Legendre,
    "jacobi": Jacobi,
}


def resolve_basis(basis: str | Basis) -> Basis:
    """A basis from its name: ``"chebyshev"``, ``"jacobi"``, with parameters ``"jacobi(0.5, 1)"``; or as it is."""
    return basis if isinstance(basis, Basis) else _basis_named(basis)


@lru_cache(maxsize=64)
def _basis_named(basis: str) -> Basis:
    name, _, arguments = basis.strip().lower().partition("(")
    if name.strip() not in BASES:
        raise ValueError(f"unknown basis '{basis}': choose one of {', '.join(BASES)}")
    try:
        values = [float(v) for v in arguments.rstrip(") ").split(",") if v.strip()]
        return BASES[name.strip()](*values)
    except TypeError:
        raise ValueError(f"basis '{name}' does not take the parameters in '{basis}'") from None


__all__ = [
    "BASES",
    "RESPONSES",
    "Basis",
    "Bernstein",
    "Chebyshev",
    "Jacobi",
    "Legendre",
    "Monomial",
    "Response",
    "chebyshev_nodes",
    "initial_response",
    "resolve_basis",
]
