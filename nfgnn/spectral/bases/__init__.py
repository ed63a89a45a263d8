"""Polynomial bases.

A basis is a table of three numbers per order. :class:`Basis` defines what the table means and on
which operator it is evaluated. Start reading there, then see :class:`Chebyshev`, the basis of the
paper. A new basis is one small file here and one line in ``BASES``; layers, models, plots and
tests then find it by its name.
"""

from functools import lru_cache

from nfgnn import plugins
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
    return basis if isinstance(basis, Basis) else _basis_named(basis)


@lru_cache(maxsize=64)
def _basis_named(basis: str) -> Basis:
    name, _, arguments = basis.strip().lower().partition("(")
    if name.strip() not in BASES:
        _load_basis(name.strip())
    if name.strip() not in BASES:
        choices = [*BASES, *plugins.plugin_names(plugins.BASES)]
        raise plugins.unknown_plugin("basis", basis, choices)
    try:
        values = [float(v) for v in arguments.rstrip(") ").split(",") if v.strip()]
    except ValueError:
        raise ValueError(f"the parameters of basis '{basis}' are not numbers") from None
    try:
        return BASES[name.strip()](*values)
    except TypeError:
        raise ValueError(f"basis '{name}' does not take the parameters in '{basis}'") from None


def _load_basis(name: str) -> None:
    """Register the basis of another package, if one has it: see :mod:`nfgnn.plugins`."""
    loaded = plugins.load_plugin(plugins.BASES, name)
    if loaded is None:
        return
    if not (isinstance(loaded, type) and issubclass(loaded, Basis)):
        problem = "does not name a subclass of nfgnn.spectral.Basis"
        raise plugins.plugin_error(plugins.BASES, name, problem)
    BASES[name] = loaded


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
