r"""Gradients for edge weights: the normalised adjacency as a differentiable function of them.

.. math:: \hat A_{ij} = d_i^{-1/2} w_{ij} d_j^{-1/2}, \qquad d_i = \sum_j w_{ij}

A recurrence with such entries is a loop of differentiable products. Besides the gradient of the
signal, a product returns that of its entries, :math:`∂ℓ/∂S_{ij} = G_i · X_j`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nfgnn.spectral.autograd import fast_apply
from nfgnn.spectral.backend import backend
from nfgnn.spectral.csr import CSR
from nfgnn.spectral.edge_checks import check_symmetric, mirrored_keys, refuse_directed
from nfgnn.spectral.torch_backend import Table
from nfgnn.tensor_cache import TensorCache

_PATTERNS = TensorCache()


@dataclass(frozen=True)
class Pattern:
    """Which entry of A every edge adds to. It depends on the edges only."""

    indptr: Tensor
    indices: Tensor
    row: Tensor
    column: Tensor
    edges: Tensor
    """Numbers of the edges that are not self-loops."""
    entry: Tensor
    """The entry of each of these edges."""
    mirror: Tensor
    """The entry with row and column swapped."""
    share: Tensor
    """One over the number of directions in which the edge is listed."""
    loops: Tensor
    """One for self-loops that were added, zero elsewhere."""

    @classmethod
    def make(cls, edge_index: Tensor, n: int, self_loops: bool, symmetrize: bool) -> "Pattern":
        edges = (edge_index[0] != edge_index[1]).nonzero().flatten()
        kept = edge_index[:, edges].long()
        given = kept[0] * n + kept[1]
        if not symmetrize:
            check_symmetric(torch.unique(given), None, n)
        diagonal = torch.arange(n if self_loops else 0, device=given.device) * (n + 1)
        key = torch.unique(torch.cat([given, mirrored_keys(given, n), diagonal]))
        entry = torch.searchsorted(key, given)
        mirror = torch.searchsorted(key, mirrored_keys(key, n))
        listed = torch.zeros(key.numel(), dtype=torch.float64, device=key.device)
        listed[entry] = 1.0
        row = key // max(n, 1)
        column = key % max(n, 1)
        indptr = torch.searchsorted(key, torch.arange(n + 1, device=key.device) * n)
        matrix = CSR(indptr, column, key, (n, n))
        return cls(
            matrix.indptr,
            matrix.indices,
            row,
            column,
            edges,
            entry,
            mirror,
            1 / (listed + listed[mirror]).clamp(min=1),
            (row == column).double(),
        )


@dataclass(frozen=True)
class DifferentiableEntries:
    """The entries of Â in float64 as a differentiable function of edge weights."""

    values: Tensor
    scale: Tensor
    """The diagonal of D^-1/2, differentiable, too."""
    pattern: Pattern

    def product(self, x: Tensor) -> Tensor:
        """Return Â X, differentiable in X and in the weights."""
        return _product(self.values.to(x.dtype), x, self.pattern)

    def terms(self, x: Tensor, table: Table) -> Tensor:
        """Return X_0 … X_K of a recurrence in Â, differentiable in x and in the weights."""
        values = self.values.to(x.dtype)
        terms = [x]
        for k, (a, b, c) in enumerate(table):
            term = a * _product(values, terms[k], self.pattern)
            if b:
                term = term + b * terms[k]
            if c:
                term = term + c * terms[k - 1]
            terms.append(term)
        return torch.stack(terms)

    def gradients(self, grad: Tensor, x: Tensor, table: Table) -> tuple[Tensor, Tensor]:
        """Return the gradients of :meth:`terms` for x and for the entries, without autograd.

        With the states S_k of the adjoint recurrence, they are S_0 and Σ_k a_k S_{k+1} · X_k.
        """
        pattern = self.pattern
        values = self.values.to(x.dtype)
        terms = self.terms(x, table)
        K = len(table)
        older = torch.zeros_like(x)
        newer = grad[K].contiguous()
        d_values = torch.zeros_like(values)
        for k in range(K - 1, -1, -1):
            a, b, _ = table[k]
            c = table[k + 1][2] if k + 1 < K else 0.0
            neighbours = terms[k].index_select(0, pattern.column)
            d_values += a * (newer.index_select(0, pattern.row) * neighbours).sum(-1)
            newest = grad[k] + a * _product(values, newer, pattern) + b * newer + c * older
            older, newer = newer, newest
        return newer, d_values


def differentiable_entries(
    edge_index: Tensor, edge_weight: Tensor, n: int, self_loops: bool, symmetrize: bool
) -> tuple[Tensor, Tensor, DifferentiableEntries]:
    """Return A and the diagonal of D^-1/2 without gradient, and the entries of Â with one."""
    pattern = _PATTERNS.lookup(
        (edge_index,),
        (n, self_loops, symmetrize),
        lambda: Pattern.make(edge_index, n, self_loops, symmetrize),
    )
    given = pattern.share.new_zeros(pattern.share.numel()).index_add(
        0, pattern.entry, edge_weight.double().index_select(0, pattern.edges)
    )
    opposite = given.index_select(0, pattern.mirror)
    if not symmetrize and not torch.allclose(given, opposite):
        refuse_directed()
    # The mean of both directions has equal gradients for them, as the filter requires.
    weight = (given + opposite) * pattern.share + pattern.loops
    degree = weight.new_zeros(n).index_add(0, pattern.row, weight)
    connected = degree > 0
    # Nodes without neighbours would have an infinite derivative.
    scale = torch.where(connected, torch.where(connected, degree, 1.0).rsqrt(), 0.0)
    values = scale.index_select(0, pattern.row) * weight * scale.index_select(0, pattern.column)
    return weight.detach(), scale.detach(), DifferentiableEntries(values, scale, pattern)


def edge_gradient(d_values: Tensor, weight: Tensor, scale: Tensor, pattern: Pattern) -> Tensor:
    """Return the gradient for the edges that are not self-loops, from that of the entries.

    This is :func:`differentiable_entries` backwards, for code that runs below autograd.
    """
    d_values = d_values.double()
    row_scale = scale.index_select(0, pattern.row)
    column_scale = scale.index_select(0, pattern.column)
    d_scale = torch.zeros_like(scale)
    d_scale.index_add_(0, pattern.row, d_values * weight * column_scale)
    d_scale.index_add_(0, pattern.column, d_values * weight * row_scale)
    d_degree = -0.5 * scale**3 * d_scale
    d_weight = d_values * row_scale * column_scale + d_degree.index_select(0, pattern.row)
    d_weight *= pattern.share
    d_given = d_weight + d_weight.index_select(0, pattern.mirror)
    return d_given.index_select(0, pattern.entry)


def _product(values: Tensor, x: Tensor, pattern: Pattern) -> Tensor:
    product: Tensor = _Product.apply(values, x, pattern)
    return product


@fast_apply
class _Product(Function):
    """Y = S X of a symmetric matrix, with gradients for its entries and for X."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, x: Tensor, pattern: Pattern) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(values, x)
        n = x.shape[0]
        matrix = CSR(pattern.indptr, pattern.indices, values, (n, n), symmetric=True)
        product: Tensor = backend(x).matmul(matrix, x)
        return product

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        values, x = ctx.saved_tensors
        pattern = ctx.pattern
        d_values = None
        d_x = None
        if ctx.needs_input_grad[0]:
            rows = grad.index_select(0, pattern.row)
            d_values = (rows * x.index_select(0, pattern.column)).sum(-1)
        if ctx.needs_input_grad[1]:
            d_x = _product(values, grad.contiguous(), pattern)
        return d_values, d_x, None
