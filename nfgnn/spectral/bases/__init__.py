"""Polynomial bases.

A basis is a table of three numbers per order. :class:`Basis` defines what the table means and on
which operator it is evaluated. Start reading there, then see :class:`Chebyshev`, the basis of the
paper. A new basis is one small file here and one line in ``BASES``; layers, models, plots and
tests then find it by its name.
"""

from functools import lru_cache

from nfgnn import plugins
from nfgnn.errors import unknown_name
from nfgnn.spectral.bases.base import Basis, Response, chebyshev_nodes
from nfgnn.spectral.bases.bernstein import Bernstein
from nfgnn.spectral.bases.chebyshev import Chebyshev
from nfgnn.spectral.bases.jacobi import Jacobi, Legendre
from nfgnn.spectral.bases.monomial import Monomial

BASES: dict[str, type[Basis]] = {
    "chebyshev": Chebyshev,
    "monomial": Monomial,
    "bernstein": Bernstein,
    "legendre": Legendre,
    "jacobi": Jacobi,
}


def resolve_basis(basis: str | Basis) -> Basis:
    """Return a basis by its name, such as ``"chebyshev"`` or ``"jacobi(0.5, 1)"``.

    A :class:`Basis` is returned unchanged.
    """
    if isinstance(basis, Basis):
        return basis
    if not isinstance(basis, str):
        raise unknown_name("basis", basis, BASES)
    return _basis_named(basis)


@lru_cache(maxsize=64)
def _basis_named(basis: str) -> Basis:
    name, _, arguments = basis.strip().lower().partition("(")
    form = plugins.find_class(plugins.BASES, name.strip(), BASES, Basis, "nfgnn.spectral.Basis")
    if form is None:
        choices = [*BASES, *plugins.plugin_names(plugins.BASES)]
        raise plugins.unknown_plugin("basis", basis, choices)
    try:
        values = [float(v) for v in arguments.rstrip(") ").split(",") if v.strip()]
    except ValueError:
        raise ValueError(f"the parameters of basis '{basis}' are not numbers") from None
    try:
        return form(*values)
    except TypeError:
        raise ValueError(f"basis '{name}' does not take the parameters in '{basis}'") from None


__all__ = [
    "BASES",
    "Basis",
    "Bernstein",
    "Chebyshev",
    "Jacobi",
    "Legendre",
    "Monomial",
    "Response",
    "chebyshev_nodes",
    "resolve_basis",
]
