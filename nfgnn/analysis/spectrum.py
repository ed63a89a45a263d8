r"""Frequencies of a graph, the eigenvalues λ in [0, 2] of :math:`L = I - \hat A`, and of features.

For small graphs :func:`eigenvalues` computes all of them. For large ones :func:`spectral_density`
estimates their density by the kernel polynomial method. The moments
:math:`m_k = \frac{1}{n} \operatorname{tr} T_k(L - I)` are estimated with random signs z,
:math:`E[z^T T_k z] = \operatorname{tr} T_k`. One recurrence of :math:`M/2` products gives M of
them, because :math:`2 T_k^2 = T_{2k} + T_0` and :math:`2 T_k T_{k+1} = T_{2k+1} + T_1`. With
Jackson's damping :math:`g_k` the share of eigenvalues with :math:`λ - 1 \le \cos θ` is

.. math:: F(\cos θ) = \frac{1}{π} \Big( g_0 m_0 (π - θ)
          - 2 \sum_{k=1}^{M-1} g_k m_k \frac{\sin kθ}{k} \Big),

which is never negative in any interval, and smoothed over a width of about :math:`π/M`. A node
without neighbours has λ = 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nfgnn.spectral import CSR, scaled_laplacian

OnStep = Callable[[int, int], None]
"""Called with the number of sparse products done and their total."""
EXACT_UP_TO = 3000
"""Largest number of nodes for which all eigenvalues are computed, in a matter of seconds."""
_MAX_COLUMNS = 64


@dataclass(frozen=True)
class Spectrum:
    """Shares of eigenvalues in equal intervals of [0, 2]."""

    edges: Tensor
    """Limits of the intervals, ``[bins + 1]``."""
    shares: Tensor
    """Share of the eigenvalues in each interval, ``[bins]``; they sum to 1."""
    error: Tensor
    """Standard error of each share due to the random signs; 0 if exact."""
    exact: bool


def spectrum(
    edge_index: Tensor,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    bins: int = 50,
    on_step: OnStep | None = None,
) -> Spectrum:
    """Return the spectrum: exact up to :data:`EXACT_UP_TO` nodes, otherwise an estimate."""
    limits = torch.linspace(0, 2, bins + 1, dtype=torch.float64)
    if num_nodes > EXACT_UP_TO:
        return spectral_density(edge_index, num_nodes, limits, edge_weight, on_step=on_step)
    values = eigenvalues(edge_index, num_nodes, edge_weight)
    # Eigenvalues are often 0, 1 or 2, which are limits of intervals. Rounding keeps the histogram
    # independent of their last bits.
    rounded = (values * 1e9).round() / 1e9
    shares = torch.histc(rounded, bins, 0.0, 2.0) / num_nodes
    return Spectrum(limits, shares, torch.zeros_like(shares), exact=True)


def eigenvalues(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> Tensor:
    """Return all eigenvalues of L in ascending order, float64 ``[n]``, with a dense solver."""
    operator = scaled_laplacian(edge_index, edge_weight, num_nodes)
    adjacency = operator.adjacency(torch.float64).tensor.to_dense()
    values: Tensor = 1 - torch.linalg.eigvalsh(adjacency).flip(0)
    return values.clamp(0, 2)


def spectral_density(
    edge_index: Tensor,
    num_nodes: int,
    edges: Tensor,
    edge_weight: Tensor | None = None,
    moments: int = 100,
    probes: int = 8,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> Spectrum:
    """Return the kernel polynomial estimate of the shares of eigenvalues in given intervals.

    Args:
        edge_index: edges in both directions, ``[2, 2E]``.
        num_nodes: number of nodes.
        edges: ascending limits of the intervals from 0 to 2.
        edge_weight: weights of the edges; by default ones.
        moments: number M of moments; the resolution is about π/M.
        probes: number of random sign vectors; their spread gives the error.
        seed: seed of the signs.
        on_step: called after every sparse product.
    """
    generator = torch.Generator().manual_seed(seed)
    bits = torch.randint(0, 2, (num_nodes, probes), generator=generator)
    signs = bits.float().mul_(2).sub_(1)
    per_probe = chebyshev_moments(edge_index, signs, moments, edge_weight, on_step)
    shares = cumulative(per_probe, edges - 1).diff(dim=0)
    error = shares.std(1) / math.sqrt(probes)
    return Spectrum(edges, shares.mean(1), error, exact=False)


def chebyshev_moments(
    edge_index: Tensor,
    z: Tensor,
    moments: int,
    edge_weight: Tensor | None = None,
    on_step: OnStep | None = None,
) -> Tensor:
    """Return :math:`z^T T_k(L - I) z / z^T z` for every k < ``moments`` and column of z."""
    operator = scaled_laplacian(edge_index, edge_weight, len(z))
    previous = z
    current = operator @ z
    norm = _column_dots(z, z)
    first = _column_dots(z, current)
    found = [norm, first]
    steps = (moments + 1) // 2
    for k in range(1, steps):
        found.append(2 * _column_dots(current, current) - norm)
        previous, current = current, 2 * (operator @ current) - previous
        found.append(2 * _column_dots(previous, current) - first)
        if on_step:
            on_step(k + 1, steps)
    return torch.stack(found)[:moments] / norm


def _column_dots(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(0, dtype=torch.float64)


def cumulative(moments: Tensor, t: Tensor) -> Tensor:
    """Return F at the points t in [-1, 1] from moments ``[M, columns]``, ``[points, columns]``."""
    M = len(moments)
    k = torch.arange(M, dtype=torch.float64)
    width = math.pi / (M + 1)
    cosine = torch.cos(width * k)
    sine = torch.sin(width * k)
    damping = ((M - k + 1) * cosine + sine / math.tan(width)) / (M + 1)
    damped = damping[:, None] * moments
    angle = torch.arccos(t.clamp(-1, 1))[:, None]
    waves = torch.sin(k[1:] * angle) / k[1:]
    linear = (math.pi - angle) * damped[:1]
    return (linear - 2 * waves @ damped[1:]) / math.pi


def feature_frequency(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, seed: int = 0
) -> float:
    r"""Return the mean graph frequency of the features, from 0 to 2; NaN for constant features.

    .. math:: \bar λ = \frac{\operatorname{tr} X^T L X}{\operatorname{tr} X^T X},
              \qquad X \text{ with centred columns}

    Below 1, adjacent nodes have similar features; at 1, edges say nothing about features; above 1,
    adjacent nodes have dissimilar features. Features with many columns are first projected onto 64
    random directions. This leaves both traces unchanged in expectation and bounds the memory, no
    matter how wide (and sparse) the features are.
    """
    features = _project(x, seed)
    features = features - features.mean(0)
    energy = features.double().square().sum()
    if float(energy) < 1e-12 * max(1, features.numel()):
        return math.nan
    product = scaled_laplacian(edge_index, edge_weight, len(features)) @ features  # (L - I) X
    correlation = (features.double() * product.double()).sum()
    return float(1 + correlation / energy)


def _project(x: Tensor, seed: int) -> Tensor:
    dense = x.layout == torch.strided
    if x.shape[1] <= _MAX_COLUMNS:
        return x if dense else x.to_dense()
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(x.shape[1], _MAX_COLUMNS, generator=generator)
    return x @ directions if dense else CSR.from_tensor(x) @ directions
