"""The base class of all gates."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nfgnn.errors import UserError
from nfgnn.spectral import ScaledLaplacian


def _identity(h: Tensor) -> Tensor:
    return h


def _softmax(h: Tensor) -> Tensor:
    return h.softmax(-1)


# Functions with a name, so that a layer can be pickled.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": nn.functional.softplus,
    "identity": _identity,
    "softmax": _softmax,
}


class Gate(nn.Module):
    r"""Compute the filter coefficients :math:`η_{ik}` of every node.

    The columns ``gamma[:, j]`` are d base filters. The gate decides how much of each a node takes.
    A subclass implements :meth:`forward` and :meth:`_reset_weight`.

    Args:
        channels: width of a term.
        K: degree of the filter.
        rank: number d of base filters.
        activation: name of σ. (default: the one of the class)
    """

    default_activation = "sigmoid"
    least_rank = 1
    rowwise = True
    """Whether the coefficients of a node depend on its own row of the terms only."""

    def __init__(self, channels: int, K: int, rank: int, activation: str | None = None) -> None:
        super().__init__()
        if rank < self.least_rank:
            raise UserError(
                f"{type(self).__name__} mixes base filters and needs a rank of {self.least_rank} "
                f"or more, got {rank}: set rank={max(3, self.least_rank)}"
            )
        name = activation or self.default_activation
        if name not in ACTIVATIONS:
            raise ValueError(f"unknown activation '{name}': choose one of {', '.join(ACTIVATIONS)}")
        self.channels = channels
        self.rank = rank
        self.activation = ACTIVATIONS[name]
        self.gamma = nn.Parameter(torch.empty(K + 1, rank))

    def reset_parameters(self, coefficients: Tensor) -> None:
        r"""Start every node at the filter with these coefficients.

        At W = 0 the coefficients of a node are :math:`σ(0) \sum_j Γ_{kj}`, so Γ starts at
        ``coefficients / (d σ(0))``. With σ(0) = 0 (tanh), Γ starts at ``coefficients / d``.
        """
        at_zero = float(self.activation(torch.zeros(self.rank))[0])
        column = coefficients / (self.rank * (at_zero or 1.0))
        with torch.no_grad():
            self.gamma.copy_(column[:, None].expand_as(self.gamma))
            self._reset_weight()

    def _reset_weight(self) -> None:
        """Draw the parameters other than Γ."""
        raise NotImplementedError

    def forward(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        """Return the coefficients, ``[K + 1, n]``.

        Args:
            terms: the terms of the basis, ``[K + 1, n, channels]``.
            x: the input of the layer, ``[n, channels]``.
            operator: the operator of the graph. Gates that are ``rowwise`` do not use it.
        """
        raise NotImplementedError

    def coefficients(
        self, terms: Tensor, x: Tensor, operator: ScaledLaplacian, batch: Tensor | None
    ) -> Tensor:
        """Return the coefficients in a batch of graphs, ``[K + 1, n]``.

        A gate that pools over the nodes of a graph overrides this.

        Args:
            terms, x, operator: see :meth:`forward`.
            batch: the graph of every node, ``[n]``; ``None`` for a single graph.
        """
        eta: Tensor = self(terms, x, operator)
        return eta

    def filter(
        self, terms: Tensor, x: Tensor, operator: ScaledLaplacian, batch: Tensor | None = None
    ) -> Tensor:
        """Return the terms summed with the coefficients of every node, ``[n, channels]``."""
        eta = self.coefficients(terms, x, operator, batch)
        return (eta[..., None] * terms).sum(0)

    def row_coefficients(self, rows: Tensor, signal: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the coefficients ``[b, K + 1]`` of rows of terms.

        Args:
            rows: ``[b, K + 1, channels]``.
            signal: computes the input of the layer from the rows.
        """
        eta: Tensor = self(rows.transpose(0, 1), signal(rows))
        return eta.T

    def extra_repr(self) -> str:
        return f"{self.channels}, rank={self.rank}"
