"""The base class of spectral layers."""

from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from nfgnn.errors import UserError
from nfgnn.nn.argument_checks import check_counts
from nfgnn.nn.kernel_choice import autocast_dtype
from nfgnn.spectral import (
    Basis,
    LambdaMax,
    ScaledLaplacian,
    TracedLaplacian,
    at_least_float32,
    check_lambda_max,
    mix,
    mix_terms,
    recurrence_terms,
    resolve_basis,
    scaled_laplacian,
)


class SpectralLayer(nn.Module):
    """Base class of layers that combine the terms of a polynomial basis.

    It checks the input, prepares the operator and computes the terms. A subclass combines them in
    :meth:`_forward`.

    Args:
        K, basis, self_loops, lambda_max, symmetrize: see :class:`~nfgnn.nn.NFConv`.
    """

    def __init__(
        self,
        K: int,
        basis: str | Basis,
        self_loops: bool,
        lambda_max: LambdaMax,
        symmetrize: bool,
    ) -> None:
        super().__init__()
        check_counts(least=0, K=K)
        check_lambda_max(lambda_max)
        self.K = K
        self.basis = resolve_basis(basis)
        self.self_loops = self_loops
        self.lambda_max = lambda_max
        self.symmetrize = symmetrize
        # The basis as plain numbers, which a compiler can trace.
        self._table: list[float] = self.basis.table(K).flatten().tolist()
        mixing = self.basis.mixing(K)
        self._mixing: list[float] | None = None if mixing is None else mixing.flatten().tolist()

    def reset_parameters(self) -> None:
        raise NotImplementedError

    @property
    def precision(self) -> torch.dtype:
        """The type of the parameters."""
        raise NotImplementedError

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        return_coefficients: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """"""
        self._check_signal(x)
        if isinstance(edge_index, ScaledLaplacian) and torch.compiler.is_compiling():
            # A compiler cannot trace a prepared operator, so it breaks the graph here.
            filtered: Tensor | tuple[Tensor, Tensor] = torch.compiler.disable(self._forward)(
                x, edge_index, edge_weight, batch, return_coefficients
            )
            return filtered
        if torch.is_autocast_enabled(x.device.type):
            half = autocast_dtype(x)
            with torch.autocast(x.device.type, enabled=False):
                x = at_least_float32(x)
                return self._forward_under_autocast(
                    half, x, edge_index, edge_weight, batch, return_coefficients
                )
        return self._forward(x, edge_index, edge_weight, batch, return_coefficients)

    def _forward_under_autocast(
        self, half: torch.dtype | None, x: Tensor, *inputs: Any
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Compute in float32, as softmax and norms do.

        Args:
            half: the precision of autocast, for subclasses that use it; ``None`` for float64.
            x: the signal, float32 at least.
            inputs: the other arguments of :meth:`_forward`.
        """
        return self._forward(x, *inputs)

    def _forward(
        self,
        x: Tensor,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None,
        batch: Tensor | None,
        return_coefficients: bool,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Return the result and, if requested, the coefficients of every node, ``[n, K + 1]``."""
        raise NotImplementedError

    def terms(self, x: Tensor, operator: ScaledLaplacian) -> Tensor:
        """Return the terms of the recurrence, ``[K + 1, n, channels]``, float32 at least."""
        if isinstance(operator, TracedLaplacian):
            return operator.terms(x, self._table)
        return recurrence_terms(x, operator, self.basis, self.K)

    def mixed(self, terms: Tensor) -> Tensor:
        """Return the terms of the basis from those of the recurrence."""
        if torch.compiler.is_compiling():
            return terms if self._mixing is None else mix(terms, self._mixing)
        return mix_terms(terms, self.basis, self.K)

    def operator(
        self, x: Tensor, edge_index: Tensor | ScaledLaplacian, edge_weight: Tensor | None
    ) -> ScaledLaplacian:
        """Return the operator that the filter is a polynomial of."""
        if not torch.compiler.is_compiling():
            return self.prepared_operator(x, edge_index, edge_weight)
        assert isinstance(edge_index, Tensor)
        return TracedLaplacian(
            edge_index, edge_weight, x.shape[-2], self.self_loops, self.lambda_max, self.symmetrize
        )

    def prepared_operator(
        self, x: Tensor, edge_index: Tensor | ScaledLaplacian, edge_weight: Tensor | None
    ) -> ScaledLaplacian:
        """Return the operator in the form that compilers cannot trace."""
        return scaled_laplacian(
            edge_index, edge_weight, x.shape[-2], self.self_loops, self.lambda_max, self.symmetrize
        )

    def _check_signal(self, x: Any) -> None:
        """Refuse an input that is not a dense matrix of numbers."""
        name = type(self).__name__
        if isinstance(x, (tuple, list)):
            _refuse(
                f"{name} filters a signal on the nodes of one graph, so bipartite input "
                "(x_source, x_target) is not supported: pass the features of all nodes as one "
                "matrix"
            )
        if x.dim() != 2 or x.layout != torch.strided:
            _refuse(
                f"{name} needs dense node features of shape [num_nodes, channels], got "
                f"{x.layout} {list(x.shape)}"
            )
        if not x.is_floating_point():
            _refuse(f"{name} needs floating-point features, got {x.dtype}: convert with x.float()")

    def _check_types(self, x: Tensor, batch: Tensor | None) -> None:
        """Refuse another precision than that of the parameters, and a batch that does not fit."""
        own = self.precision
        if x.dtype != own:
            _refuse(
                f"x is {x.dtype}, but the parameters of {type(self).__name__} are {own}: convert "
                "one of them, for example with layer.to(x.dtype)"
            )
        if batch is None:
            return
        if not isinstance(batch, Tensor):
            _refuse(
                f"batch = {batch!r} is not a tensor with the graph of every node; "
                "return_coefficients is passed by keyword"
            )
        if batch.is_floating_point() or batch.dtype == torch.bool:
            _refuse(
                f"batch holds the number of the graph of every node, but it is {batch.dtype}: "
                "convert it with batch.long()"
            )
        if batch.shape != x.shape[:1]:
            _refuse(
                f"batch has the shape {list(batch.shape)}, but x has {x.shape[0]} rows: pass the "
                "graph of every node"
            )
        if isinstance(self.lambda_max, str):
            _refuse(
                'lambda_max="estimate" would be one number for all graphs of a batch: give '
                "lambda_max as a number"
            )


def _refuse(message: str) -> NoReturn:
    raise UserError(message)
