"""A graph convolution with a matrix for every order of a polynomial."""

from typing import Any

import torch
from torch import Tensor, nn

from nfgnn import plugins
from nfgnn.errors import UserError, unknown_name
from nfgnn.nn.argument_checks import check_counts, check_heads
from nfgnn.nn.conv.spectral_layer import SpectralLayer
from nfgnn.nn.head_gates import HEAD_GATES, HeadGate, find_head_gate
from nfgnn.nn.kernel_choice import is_fused
from nfgnn.nn.polynomial_linear import polynomial_linear
from nfgnn.nn.terms_linear import linear
from nfgnn.spectral import (
    CSR,
    Basis,
    LambdaMax,
    ScaledLaplacian,
    TracedLaplacian,
    recurrence_table,
    sum_precision,
)

OPERATORS = ("symmetric", "mean")


class SpectralConv(SpectralLayer):
    r"""A spectral convolution that mixes channels: every order has its own weight matrix.

    .. math:: Z = \sum_{k=0}^{K} \big(η_k ∘ X^{(k)}\big) W_k + b, \qquad X^{(k)} = p_k(M)\,X

    The gate gives every node and head its own coefficients η; without one, η = 1. With K = 1, the
    basis ``"monomial"`` and the operator ``"mean"``, the layer is that of GraphSAGE.

    Args:
        in_channels (int): number of input channels.
        out_channels (int): number of output channels.
        K (int): degree: K + 1 matrices and K sparse products. (default: ``1``)
        basis (str or Basis): polynomial basis, see :data:`nfgnn.spectral.BASES`.
            (default: ``"monomial"``)
        operator (str): ``"symmetric"``: polynomials of the scaled Laplacian, as in
            :class:`~nfgnn.nn.NFConv`; ``"mean"``: with :math:`D^{-1} A` in place of
            :math:`D^{-1/2} A D^{-1/2}`. (default: ``"symmetric"``)
        gate (str): ``"none"``, ``"term"``, ``"agreement"``, ``"attention"`` or ``"cluster"``, see
            :mod:`nfgnn.nn.head_gates`. (default: ``"none"``)
        heads (int): groups of channels with coefficients of their own, for layers with a gate.
            (default: ``8``)
        bias (bool): whether to add b. (default: ``True``)
        self_loops, lambda_max, symmetrize: see :class:`~nfgnn.nn.NFConv`.

    Gradients flow to ``edge_weight``, but not through the gates ``"agreement"`` and ``"cluster"``,
    not through the degrees that ``"attention"`` reads, and not inside ``torch.compile`` with
    ``operator="mean"``.

    Under autocast, the products with the weight matrices and the result have half precision, as in
    :class:`torch.nn.Linear`. The terms and the gate are computed in float32; on a GPU, the terms of
    a layer without a gate have half precision, too.

    Shapes:
        - **input:** node features ``(n, in_channels)``, edge indices ``(2, edges)``, edge weights
          ``(edges)`` *(optional)*, the graph of every node in a batch of graphs ``(n)``
          *(optional)*
        - **output:** ``(n, out_channels)``
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        K: int = 1,
        basis: str | Basis = "monomial",
        operator: str = "symmetric",
        gate: str = "none",
        heads: int = 8,
        bias: bool = True,
        self_loops: bool = False,
        lambda_max: LambdaMax = 2.0,
        symmetrize: bool = False,
    ) -> None:
        super().__init__(K, basis, self_loops, lambda_max, symmetrize)
        check_counts(in_channels=in_channels, out_channels=out_channels, heads=heads)
        if operator not in OPERATORS:
            raise unknown_name("operator", operator, OPERATORS)
        if not isinstance(gate, str):
            raise UserError(f'gate = {gate!r} is not a name: pass gate="none" for no gate')
        gate_class = None if gate == "none" else find_head_gate(gate)
        if gate != "none" and gate_class is None:
            raise plugins.unknown_plugin("gate", gate, ("none", *HEAD_GATES))
        if gate_class is not None:
            check_heads(heads, in_channels=in_channels)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.averages = operator == "mean"
        self.weight = nn.Parameter(torch.empty(K + 1, in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.gate: HeadGate | None = None
        if gate_class is not None:
            self.gate = gate_class(in_channels, K, heads)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as :class:`torch.nn.Linear` does for (K + 1) inputs per channel.

        The bias starts at zero.
        """
        bound = ((self.K + 1) * self.in_channels) ** -0.5
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.gate is not None:
            self.gate.reset_parameters()

    @property
    def precision(self) -> torch.dtype:
        return self.weight.dtype

    def _forward(
        self,
        x: Tensor,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None,
        batch: Tensor | None,
        return_coefficients: bool,
        *,
        product_dtype: torch.dtype | None = None,
    ) -> Any:
        """Return the result and, if requested, Ψ.

        Args:
            product_dtype: precision of the products with the weight matrices. (default: that of x)
        """
        self._check_types(x, batch)
        operator = self.operator(x, edge_index, edge_weight)
        weight = self.weight.to(product_dtype or self.weight.dtype)
        signal = x.to(weight.dtype)
        coefficients = None
        if self._is_one_operation(signal, operator):
            table = recurrence_table(self.basis, self.K, operator.lambda_max)
            out = polynomial_linear(signal, weight, self._matrix(signal, operator), table)
        else:
            terms = self.order_terms(x, operator)
            if self.gate is not None:
                coefficients = self.gate(terms, operator, batch)
                terms = [
                    self._weighted(term, coefficients[..., k, :]) for k, term in enumerate(terms)
                ]
            out = linear([term.to(weight.dtype) for term in terms], weight)
        if self.bias is not None:
            out = out + self.bias.to(out.dtype)
        if not return_coefficients:
            return out
        if coefficients is None:
            coefficients = x.new_ones(x.shape[0], self.K + 1, 1)
        return out, coefficients.mean(-1)

    def _forward_under_autocast(self, half: torch.dtype | None, x: Tensor, *inputs: Any) -> Any:
        """Multiply by the weights in half precision, as :class:`torch.nn.Linear` does."""
        return self._forward(x, *inputs, product_dtype=half)

    def _is_one_operation(self, x: Tensor, operator: ScaledLaplacian) -> bool:
        """Return whether the GPU's kernels compute the terms and their sum as one operation."""
        plain = self.gate is None and self._mixing is None
        return plain and self._has_matrix(operator) and is_fused(x)

    def _has_matrix(self, operator: ScaledLaplacian) -> bool:
        return not isinstance(operator, TracedLaplacian) and operator.entries is None

    def _matrix(self, x: Tensor, operator: ScaledLaplacian) -> CSR:
        """Return the matrix of the recurrence, in the precision of its sums."""
        if self.averages:
            return operator.mean_matrix(sum_precision(x))
        return operator.adjacency(sum_precision(x))

    def order_terms(self, x: Tensor, operator: ScaledLaplacian) -> list[Tensor]:
        """Return the K + 1 terms, ``[n, in_channels]`` each."""
        if not self._has_matrix(operator):
            return self._engine_terms(x, operator)
        matrix = self._matrix(x, operator)
        terms = [x]
        for a, b, c in recurrence_table(self.basis, self.K, operator.lambda_max):
            term = matrix.scaled(a) @ terms[-1]
            if b:
                term = term + b * terms[-1]
            if c and len(terms) > 1:
                term = term + c * terms[-2]
            terms.append(term)
        if self._mixing is not None:
            return list(self.mixed(torch.stack(terms)).to(x.dtype).unbind(0))
        return terms

    def _engine_terms(self, x: Tensor, operator: ScaledLaplacian) -> list[Tensor]:
        """Return the terms by the engine, which compilers can trace and edge weights pass through.

        It computes with the symmetric operator: D⁻¹ A = D^(-1/2) Â D^(1/2).
        """
        if not self.averages:
            return list(self.mixed(self.terms(x, operator)).to(x.dtype).unbind(0))
        _, root = operator.roots_of_degrees(sum_precision(x))
        terms = self.mixed(self.terms(x * root, operator))
        return list((terms / root).to(x.dtype).unbind(0))

    def _weighted(self, term: Tensor, coefficients: Tensor) -> Tensor:
        """Multiply the channels of every head by its coefficient, ``[n, heads]``."""
        heads: Tensor = term.unflatten(-1, (coefficients.shape[-1], -1))
        return (heads * coefficients[..., None].to(term.dtype)).flatten(-2)

    def __repr__(self) -> str:
        text = f"{type(self).__name__}({self.in_channels}, {self.out_channels}, K={self.K}"
        text += f", basis={self.basis}, operator={'mean' if self.averages else 'symmetric'}"
        if self.gate is not None:
            text += f", gate={type(self.gate).__name__}, heads={self.gate.heads}"
        return f"{text})"

    def _check_signal(self, x: Any) -> None:
        super()._check_signal(x)
        if x.shape[-1] != self.in_channels:
            raise UserError(
                f"x has {x.shape[-1]} columns, but the layer expects {self.in_channels} channels: "
                f"use SpectralConv({x.shape[-1]}, {self.out_channels}), or add a linear layer "
                "before it"
            )
