r"""The spectrum of :math:`L = I - \hat A`: which frequencies λ in [0, 2] a graph has.

Small graphs: all eigenvalues (:func:`eigenvalues`). Large ones: the density by the kernel polynomial method
(:func:`spectral_density`). Its moments :math:`m_k = \frac{1}{n} \operatorname{tr} T_k(L - I)` are estimated with random
signs z, :math:`E[z^T T_k z] = \operatorname{tr} T_k`; one recurrence of :math:`M/2` products gives M of them because
:math:`2 T_k^2 = T_{2k} + T_0` and :math:`2 T_k T_{k+1} = T_{2k+1} + T_1`. With Jackson's damping :math:`g_k` the share
of eigenvalues with :math:`λ - 1 \le \cos θ` is

.. math:: F(\cos θ) = \frac{1}{π} \Big( g_0 m_0 (π - θ) - 2 \sum_{k=1}^{M-1} g_k m_k \frac{\sin kθ}{k} \Big),

never negative in any interval, and smoothed over a width of about :math:`π/M`. A node without neighbours has λ = 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nfgnn.spectral import scaled_laplacian

OnStep = Callable[[int, int], None]
"""Told how many sparse products of how many are done."""
EXACT_UP_TO = 3000
"""Up to this many nodes all eigenvalues are computed: a matter of seconds."""


@dataclass(frozen=True)
class Spectrum:
    """Shares of eigenvalues in equal intervals of [0, 2]."""

    edges: Tensor
    """Limits of the intervals, ``[bins + 1]``."""
    shares: Tensor
    """Share of the eigenvalues in each, ``[bins]``; they sum to 1."""
    error: Tensor
    """Standard error of each share, from the random signs; 0 where exact."""
    exact: bool


def spectrum(
    edge_index: Tensor,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    bins: int = 50,
    on_step: OnStep | None = None,
) -> Spectrum:
    """Exact up to :data:`EXACT_UP_TO` nodes, estimated beyond; same graph, same answer."""
    limits = torch.linspace(0, 2, bins + 1, dtype=torch.float64)
    if num_nodes > EXACT_UP_TO:
        return spectral_density(edge_index, num_nodes, limits, edge_weight, on_step=on_step)
    values = eigenvalues(edge_index, num_nodes, edge_weight)
    # A histogram must not depend on the last bit of an eigenvalue at a limit, as 0, 1 and 2 often are.
    shares = torch.histc((values * 1e9).round() / 1e9, bins, 0.0, 2.0) / num_nodes
    return Spectrum(limits, shares, torch.zeros_like(shares), exact=True)


def eigenvalues(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> Tensor:
    """All eigenvalues of L, ascending, float64 ``[n]``; dense, so for small graphs."""
    adjacency = (
        scaled_laplacian(edge_index, edge_weight, num_nodes)
        .adjacency(torch.float64)
        .tensor.to_dense()
    )
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
    """The kernel polynomial estimate of the shares of eigenvalues between the limits ``edges``.

    Args:
        edge_index: links in both directions, ``[2, 2E]``.
        num_nodes: number of nodes.
        edges: ascending limits from 0 to 2.
        edge_weight: weights of the links; by default ones.
        moments: number M of moments; the resolution is about π/M.
        probes: number of random sign vectors; their spread gives the error.
        seed: of the signs.
        on_step: told how many sparse products of how many are done.
    """
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (num_nodes, probes), generator=generator).float().mul_(2).sub_(1)
    per_probe = chebyshev_moments(edge_index, signs, moments, edge_weight, on_step)
    distribution = cumulative(per_probe, edges - 1)
    shares = distribution.diff(dim=0)
    return Spectrum(edges, shares.mean(1), shares.std(1) / math.sqrt(probes), exact=False)


def chebyshev_moments(
    edge_index: Tensor,
    z: Tensor,
    moments: int,
    edge_weight: Tensor | None = None,
    on_step: OnStep | None = None,
) -> Tensor:
    """:math:`z^T T_k(L - I) z / z^T z` for k below ``moments`` and every column of z, ``[moments, columns]``."""
    operator = scaled_laplacian(edge_index, edge_weight, len(z))
    before, now = z, operator @ z
    first, norm = (z * now).sum(0, dtype=torch.float64), z.square().sum(0, dtype=torch.float64)
    found = [norm, first]
    steps = (moments + 1) // 2
    for k in range(1, steps):
        found.append(2 * now.square().sum(0, dtype=torch.float64) - norm)
        before, now = now, 2 * (operator @ now) - before
        found.append(2 * (before * now).sum(0, dtype=torch.float64) - first)
        if on_step:
            on_step(k + 1, steps)
    return torch.stack(found)[:moments] / norm


def cumulative(moments: Tensor, t: Tensor) -> Tensor:
    """F at the points t in [-1, 1] from the moments ``[M, columns]``, ``[points, columns]``."""
    M = len(moments)
    k = torch.arange(M, dtype=torch.float64)
    width = math.pi / (M + 1)
    damping = ((M - k + 1) * torch.cos(width * k) + torch.sin(width * k) / math.tan(width)) / (
        M + 1
    )
    angle = torch.arccos(t.clamp(-1, 1))[:, None]
    waves = torch.sin(k[1:] * angle) / k[1:]
    damped = damping[:, None] * moments
    return ((math.pi - angle) * damped[:1] - 2 * waves @ damped[1:]) / math.pi
