"""The node-oriented filter."""

from typing import Any

import torch
from torch import Tensor

from nfgnn import plugins
from nfgnn.errors import UserError
from nfgnn.nn.argument_checks import check_counts
from nfgnn.nn.conv.polynomial_filter import PolynomialFilter
from nfgnn.nn.gates import GATES, find_gate
from nfgnn.spectral import (
    RESPONSES,
    Basis,
    LambdaMax,
    Response,
    ScaledLaplacian,
)


class NFConv(PolynomialFilter):
    r"""The node-oriented filter of `Node-oriented Spectral Filtering for Graph Neural Networks
    <https://arxiv.org/abs/2212.03654>`_ (Algorithm 1): a polynomial filter for every node.

    .. math::
        X^{(k)} = p_k(\tilde L)\,X, \qquad η_{ik} = σ\big(X^{(k)}_i W\big) · Γ_k, \qquad
        Z_i = \sum_{k=0}^{K} η_{ik}\, X^{(k)}_i

    The columns of :math:`Γ ∈ ℝ^{(K+1)×d}` are d base filters that all nodes share.
    :math:`σ(X^{(k)}_i W)` is the share of each that node i takes. (With ``gate="input"`` and
    ``"agreement"`` the matrix :math:`Ψ = [η_{ik}]` has rank d. With the other gates the shares may
    differ between orders.)

    Args:
        channels (int): number of channels, which the filter does not mix.
        K (int): degree of the filters: K + 1 coefficients per node and K sparse products.
            (default: ``10``)
        rank (int): number d of base filters. (default: ``1``)
        basis (str or Basis): polynomial basis, see :data:`nfgnn.spectral.BASES`.
            (default: ``"chebyshev"``)
        gate (str): how the coefficients of a node are computed: ``"term"`` (Algorithm 1),
            ``"input"`` (from the input of the layer), ``"published"`` (as in the published code),
            ``"agreement"`` (from the relation to its neighbourhood; needs a rank of 2 or more), see
            :mod:`nfgnn.nn.gates`. (default: ``"term"``)
        activation (str): σ; ``None`` stands for that of the gate: sigmoid, tanh for
            ``"published"``, softmax for ``"agreement"``. (default: ``None``)
        init (str or callable): initial frequency response of all nodes: a name (``"ppr"``,
            ``"all-pass"``, ``"low-pass"``, ``"high-pass"``, ``"band-stop"``, ``"random"``, see
            :mod:`nfgnn.spectral.response`) or a function of t. (default: ``"ppr"``)
        alpha (float): restart probability of ``init="ppr"``. (default: ``0.1``)
        self_loops (bool): whether to normalise A + I instead of A. (default: ``False``)
        lambda_max (float or "estimate"): assumed largest eigenvalue of the Laplacian.
            (default: ``2.0``)
        symmetrize (bool): whether to add the missing directions of edges, as required for
            sampled batches of PyTorch Geometric. An edge that is listed in both directions gets the
            mean of their weights. By default, edges in one direction are refused.
            (default: ``False``)

    Shapes:
        - **input:** node features ``(n, channels)``, edge indices ``(2, edges)``, edge weights
          ``(edges)`` *(optional)*, the graph of every node in a batch of graphs ``(n)``
          *(optional)*
        - **output:** ``(n, channels)``; with ``return_coefficients`` also Ψ, ``(n, K + 1)``

    The terms are computed in float32 if x is bfloat16 or float16, and so are the cosines of
    ``gate="agreement"``. Coefficients and weighted sum have the precision of x. Under autocast, the
    layer computes and returns float32. Inside ``torch.compile``, pass ``edge_index``, not a
    prepared operator. Gradients flow to ``edge_weight``, except through ``gate="agreement"``. Only
    ``gate="agreement"`` depends on ``batch``; without it, all nodes count as one graph.
    """

    def __init__(
        self,
        channels: int,
        *,
        K: int = 10,
        rank: int = 1,
        basis: str | Basis = "chebyshev",
        gate: str = "term",
        activation: str | None = None,
        init: str | Response = "ppr",
        alpha: float = 0.1,
        self_loops: bool = False,
        lambda_max: LambdaMax = 2.0,
        symmetrize: bool = False,
    ) -> None:
        super().__init__(K, basis, init, alpha, self_loops, lambda_max, symmetrize)
        check_counts(channels=channels, rank=rank)
        if not isinstance(gate, str):
            raise UserError(f'gate = {gate!r} is not a name, such as "term"')
        gate_class = find_gate(gate)
        if gate_class is None:
            raise plugins.unknown_plugin("gate", gate, GATES)
        self.channels = channels
        self.rank = rank
        self.gate = gate_class(channels, K, rank, activation)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw W, and start all nodes at the initial response."""
        self.gate.reset_parameters(self.initial_coefficients())

    @property
    def precision(self) -> torch.dtype:
        return self.gate.gamma.dtype

    def filter(
        self, terms: Tensor, x: Tensor, operator: ScaledLaplacian, batch: Tensor | None = None
    ) -> Tensor:
        return self.gate.filter(self.mixed(terms).to(x.dtype), x, operator, batch)

    def node_coefficients(
        self, terms: Tensor, x: Tensor, operator: ScaledLaplacian, batch: Tensor | None
    ) -> Tensor:
        # Computed again, because fused gates sum the terms without returning the coefficients.
        return self.gate.coefficients(self.mixed(terms).to(x.dtype), x, operator, batch).T

    def filter_rows(self, rows: Tensor) -> Tensor:
        return torch.bmm(self.row_coefficients(rows).unsqueeze(1), rows).squeeze(1)

    def row_coefficients(self, rows: Tensor) -> Tensor:
        return self.gate.row_coefficients(rows, self._signal)

    def _signal(self, rows: Tensor) -> Tensor:
        """Return the signal that rows are the terms of."""
        if self.basis.mixing(self.K) is None:
            return rows[:, 0]
        # No single term of such a basis is the signal, but the combination of terms is that
        # represents the constant polynomial 1.
        weights = self.basis.project(RESPONSES["all-pass"], self.K).to(rows)
        return torch.einsum("k,bkc->bc", weights, rows)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({self.channels}, K={self.K}, rank={self.rank}, basis={self.basis})"

    def _check_signal(self, x: Any) -> None:
        super()._check_signal(x)
        if x.shape[-1] != self.channels:
            raise UserError(
                f"x has {x.shape[-1]} columns, but the layer expects {self.channels} channels: "
                f"use NFConv({x.shape[-1]}), or add a linear layer before it"
            )
