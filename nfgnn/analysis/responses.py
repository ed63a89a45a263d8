r"""Frequency responses of learned filters, and the nodes whose filters the paper compares.

A filter with coefficients :math:`ψ_k` in a basis :math:`p_k` has the frequency response
:math:`g(λ) = \sum_k ψ_k\, p_k(2λ/λ_{\max} - 1)`. One row of Ψ is the filter of one node; with rank
1, the column of Γ is the filter that all nodes share.
"""

import torch
from torch import Tensor

from nfgnn.spectral import Basis, resolve_basis


def frequency_response(
    coefficients: Tensor,
    basis: str | Basis = "chebyshev",
    points: int = 201,
    lambda_max: float = 2.0,
) -> tuple[Tensor, Tensor]:
    """Return frequencies λ ``[points]`` and responses ``[filters, points]``, both float64.

    Args:
        coefficients: one filter per row, ``[filters, K + 1]``, or a single filter, ``[K + 1]``.
        basis: the polynomials that the coefficients belong to.
        points: number of frequencies from 0 to ``lambda_max``.
        lambda_max: the largest frequency that the filter assumes.
    """
    t = torch.linspace(-1, 1, points, dtype=torch.float64)
    rows = torch.atleast_2d(coefficients).double()
    values = resolve_basis(basis).evaluate(t, rows.shape[1] - 1)
    return (t + 1) * lambda_max / 2, rows @ values.T


def centre_frequency(frequencies: Tensor, responses: Tensor) -> Tensor:
    r"""Return :math:`\int λ g^2 / \int g^2` per row: below 1 for low-pass, above for high-pass."""
    energy = responses.square()
    return (energy @ frequencies) / energy.sum(-1)


def filter_subsets(h1: Tensor, h2: Tensor) -> dict[str, Tensor]:
    r"""Return the paper's three subsets of nodes, by homophily at one and two hops, as masks.

    - ``low-pass``: :math:`h_{N_1} > 0.7`
    - ``band-pass``: :math:`0.4 < h_{N_1} < 0.7` and :math:`0.4 < h_{N_2} < 0.7`
    - ``high-pass``: :math:`h_{N_1} < 0.2` and :math:`h_{N_2} > 0.7`

    Nodes with undefined h are in none.
    """
    return {
        "low-pass": h1 > 0.7,
        "band-pass": (h1 > 0.4) & (h1 < 0.7) & (h2 > 0.4) & (h2 < 0.7),
        "high-pass": (h1 < 0.2) & (h2 > 0.7),
    }
