"""The node-oriented filter."""

from torch import Tensor

from nfgnn.nn.conv.gates import GATES
from nfgnn.nn.conv.polynomial import PolynomialConv
from nfgnn.spectral import Basis, LambdaMax, Response, ScaledLaplacian, mix_terms, recurrence_terms


class NFConv(PolynomialConv):
    r"""The node-oriented spectral filter of `Node-oriented Spectral Filtering for Graph Neural Networks
    <https://arxiv.org/abs/2212.03654>`_ (Algorithm 1): every node has a polynomial filter of its own.

    .. math::
        X^{(k)} = p_k(\tilde L)\,X, \qquad η_{ik} = σ\big(X^{(k)}_i W\big) · Γ_k, \qquad
        Z_i = \sum_{k=0}^{K} η_{ik}\, X^{(k)}_i

    The columns of :math:`Γ ∈ ℝ^{(K+1)×d}` are d base filters that all nodes share, and :math:`σ(X^{(k)}_i W)` says how
    much of each node i takes. (With ``gate="input"`` and ``"agreement"`` the matrix :math:`Ψ = [η_{ik}]` is of rank d;
    with the other gates the share may differ from order to order.)

    Args:
        channels (int): number of channels; the filter does not mix them.
        K (int): degree of the filters, so K + 1 coefficients per node and K sparse products. (default: ``10``)
        rank (int): number d of base filters. (default: ``1``)
        basis (str or Basis): name of the polynomial basis, see :data:`nfgnn.spectral.bases.BASES`. (default: ``"chebyshev"``)
        gate (str): where a node's coefficients come from: ``"term"`` (Algorithm 1), ``"input"`` (from the layer's
            input alone), ``"published"`` (as in the published code), ``"agreement"`` (from how a node stands to its
            neighbourhood; needs a rank of 2 or more), see :mod:`nfgnn.nn.conv.gates`. (default: ``"term"``)
        activation (str): σ; ``None`` is the gate's own: sigmoid, tanh for ``"published"``, softmax for
            ``"agreement"``. (default: ``None``)
        init (str or callable): frequency response that every node starts from, see :mod:`nfgnn.spectral.response`: a name
            (``"ppr"``, ``"all-pass"``, ``"low-pass"``, ``"high-pass"``, ``"band-stop"``, ``"random"``) or a function of
            t. (default: ``"ppr"``)
        alpha (float): restart probability of ``init="ppr"``. (default: ``0.1``)
        self_loops (bool): normalise A + I in place of A. (default: ``False``)
        lambda_max (float or "estimate"): largest eigenvalue assumed of the Laplacian. (default: ``2.0``)

    Shapes:
        - **input:** node features ``(n, channels)``, edge indices ``(2, edges)``, edge weights ``(edges)`` *(optional)*
        - **output:** ``(n, channels)``; with ``return_coefficients`` also Ψ, ``(n, K + 1)``
    """

    def __init__(
        self,
        channels: int,
        K: int = 10,
        rank: int = 1,
        basis: str | Basis = "chebyshev",
        gate: str = "term",
        activation: str | None = None,
        init: str | Response = "ppr",
        alpha: float = 0.1,
        self_loops: bool = False,
        lambda_max: LambdaMax = 2.0,
    ) -> None:
        super().__init__(K, basis, init, alpha, self_loops, lambda_max)
        if rank < 1:
            raise ValueError(
                f"rank is the number of base filters and must be at least 1, got {rank}"
            )
        if gate not in GATES:
            raise ValueError(f"unknown gate '{gate}': choose one of {', '.join(GATES)}")
        self.channels, self.rank = channels, rank
        self.gate = GATES[gate](channels, K, rank, activation)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw W anew and start every node at the initial response."""
        self.gate.reset_parameters(self.initial_coefficients())

    def filter(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian) -> Tensor:
        """The sum of the recurrence's terms ``[K + 1, n, channels]`` under every node's own coefficients."""
        return self.gate.filter(mix_terms(terms, self.basis, self.K), x, operator)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
        return_coefficients: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """"""
        operator = self.operator(x, edge_index, edge_weight)
        terms = recurrence_terms(x, operator, self.basis, self.K)
        out = self.filter(terms, x, operator)
        if not return_coefficients:
            return out
        return out, self.gate(mix_terms(terms, self.basis, self.K), x, operator).T

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, K={self.K}, rank={self.rank}, basis={self.basis})"
