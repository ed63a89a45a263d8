"""The definition of a polynomial basis: a table of three numbers per order."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

Response = Callable[[Tensor], Tensor]
"""A frequency response: values g(t) of a filter at points t in [-1, 1], see :class:`Basis`."""

_LARGEST_CONDITION = 1e10
"""Condition number of the terms up to which coefficients are solved for exactly, in float64."""


class Basis(ABC):
    r"""Polynomials :math:`p_0, …, p_K` of degree at most :math:`K` on :math:`[-1, 1]`.

    **The variable.** Every basis is evaluated on the scaled Laplacian
    :math:`\tilde L = 2L/\lambda_{\max} - I`, whose eigenvalues are
    :math:`t = 2\lambda/\lambda_{\max} - 1`: :math:`t = -1` is the lowest graph frequency,
    :math:`t = 1` the highest. With :math:`\lambda_{\max} = 2`, :math:`\tilde L = -\hat A`. A basis
    that the literature writes in powers of :math:`\hat A`, such as
    :class:`~nfgnn.spectral.bases.Monomial`, has that sign in its table.

    **The table.** The terms :math:`X^{(k)} = p_k(\tilde L)\,X` obey

    .. math:: X^{(k+1)} = a_k\,\tilde L X^{(k)} + b_k\,X^{(k)} + c_k\,X^{(k-1)}, \qquad
              X^{(0)} = X,\; X^{(-1)} = 0,

    so a basis is the table of rows :math:`(a_k, b_k, c_k)`, and one engine
    (:func:`nfgnn.spectral.polynomial_terms`) runs all of them. A basis without a three-term
    recurrence is a fixed linear map (:meth:`mixing`) of one that has it.
    """

    @abstractmethod
    def table(self, K: int) -> Tensor:
        """Return the recurrence, ``[K, 3]`` in float64: row k leads from term k to term k + 1.

        The last number of row 0 has no effect, because term -1 is zero.
        """

    def mixing(self, K: int) -> Tensor | None:
        """Return the terms of this basis as combinations of those of the table.

        ``[K + 1, K + 1]``; ``None`` stands for the identity.
        """
        return None

    def evaluate(self, t: Tensor, K: int) -> Tensor:
        """Return the values p_k(t), ``[*t.shape, K + 1]``."""
        t = torch.as_tensor(t)
        previous = torch.zeros_like(t)
        current = torch.ones_like(t)
        values = [current]
        for a, b, c in self.table(K).tolist():
            previous, current = current, (a * t + b) * current + c * previous
            values.append(current)
        terms = torch.stack(values, dim=-1)
        mixing = self.mixing(K)
        return terms if mixing is None else terms @ mixing.to(terms).T

    def project(self, response: Response, K: int) -> Tensor:
        """Return the coefficients of a polynomial of degree K that approximates a response.

        The polynomial agrees with the response at the K + 1 Chebyshev nodes. It does not depend on
        the basis. It equals the response if that is such a polynomial, and is near the best
        approximation otherwise.

        Some bases are so ill-conditioned at a high degree (Bernstein from K = 34, the monomial one
        from K = 27) that rounding errors would dominate the exact solution. The least-squares
        solution of least norm takes its place. It is as accurate, and its coefficients stay small.
        """
        t = chebyshev_nodes(K + 1)
        terms = self.evaluate(t, K)
        values = response(t).to(t)
        coefficients: Tensor
        if float(torch.linalg.cond(terms)) < _LARGEST_CONDITION:
            coefficients = torch.linalg.solve(terms, values)
        else:
            cutoff = 1 / _LARGEST_CONDITION
            found = torch.linalg.lstsq(terms, values[:, None], rcond=cutoff, driver="gelsd")
            coefficients = found.solution[:, 0]
        return coefficients

    def __str__(self) -> str:
        """Return the name by which :func:`~nfgnn.spectral.bases.resolve_basis` finds the basis."""
        return type(self).__name__.lower()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def chebyshev_nodes(count: int) -> Tensor:
    """Return the zeros of the Chebyshev polynomial of degree ``count``, in float64."""
    return torch.cos((torch.arange(count, dtype=torch.float64) + 0.5) * torch.pi / count)
