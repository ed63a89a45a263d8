"""The engine as registered operators, for layers inside ``torch.compile``.

A compiler traces tensors and numbers. It cannot trace the cache of operators or the choice of a
backend, so these happen inside the operators ``nfgnn::terms``, ``nfgnn::adjoint`` and so on, when
the compiled code runs. They take the edges themselves; the prepared graph is cached as in eager
mode.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nfgnn.errors import UserError
from nfgnn.spectral.backend import at_least_float32, backend
from nfgnn.spectral.edge_checks import LambdaMax, refuse_estimate
from nfgnn.spectral.edge_weights import differentiable_entries, edge_gradient
from nfgnn.spectral.laplacian import ScaledLaplacian, scaled_laplacian
from nfgnn.spectral.torch_backend import Table, laplacian_table
from nfgnn.tensor_cache import TensorCache

_OPERATORS = TensorCache(by_memory=True)
# A new graph is prepared on the host, which a captured CUDA graph cannot do.
_TAGS = [tag for name, tag in torch.Tag.__members__.items() if name == "cudagraph_unsafe"]
_GRAPH = "Tensor edge_index, Tensor? edge_weight, bool self_loops, bool symmetrize, "
_SETTINGS = _GRAPH + "float? lambda_max, float[] table, bool of_laplacian"


class TracedLaplacian(ScaledLaplacian):
    """The scaled Laplacian while a compiler traces: the edges and how to normalise them.

    Args:
        edge_index, edge_weight, num_nodes, self_loops, lambda_max, symmetrize: see
            :func:`~nfgnn.spectral.scaled_laplacian`.
    """

    def __init__(
        self,
        edge_index: Tensor,
        edge_weight: Tensor | None,
        num_nodes: int,
        self_loops: bool,
        lambda_max: LambdaMax,
        symmetrize: bool,
    ) -> None:
        # The attributes of the base class exist only when the compiled code runs.
        number = None if isinstance(lambda_max, str) else float(lambda_max)
        if number is None and edge_weight is not None and edge_weight.requires_grad:
            refuse_estimate()
        self.graph = (edge_index, edge_weight, self_loops, symmetrize, number)
        weight = None if edge_weight is None else edge_weight.detach()
        self.constant_graph = (edge_index, weight, self_loops, symmetrize, number)
        self.entries = None
        self.self_loops = self_loops
        # A compiler drops what is computed and not used.
        self._degree = torch.ops.nfgnn.degree(num_nodes, *self.constant_graph)
        self.scale = torch.where(self._degree > 0, self._degree.rsqrt(), 0.0)

    def terms(self, x: Tensor, table: list[float]) -> Tensor:
        """Return the terms of a recurrence in the Laplacian, ``[K + 1, n, channels]``.

        Args:
            x: the signal.
            table: :meth:`Basis.table` as one list of 3 K numbers.
        """
        terms: Tensor = torch.ops.nfgnn.terms(at_least_float32(x), *self.graph, table, True)
        return terms

    def roots_of_degrees(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        weight = self.graph[1]
        if weight is not None and weight.requires_grad:
            raise UserError(
                "means over neighbours have no gradient for edge weights inside torch.compile: "
                "pass edge_weight.detach(), or do not compile the layer"
            )
        return super().roots_of_degrees(dtype)

    def powers(self, x: Tensor, steps: int) -> Tensor:
        """Return Â^k x for k = 0 … ``steps``, without a gradient for edge weights."""
        table = [1.0, 0.0, 0.0] * steps
        terms: Tensor = torch.ops.nfgnn.terms(x, *self.constant_graph, table, False)
        return terms


def mix(terms: Tensor, mixing: list[float], transposed: bool = False) -> Tensor:
    """Multiply ``[K + 1, …]`` by a square matrix, given as a list, or by its transpose."""
    mixed: Tensor = torch.ops.nfgnn.mix(terms, mixing, transposed)
    return mixed


def _operator(
    n: int,
    edge_index: Tensor,
    edge_weight: Tensor | None,
    self_loops: bool,
    symmetrize: bool,
    lambda_max: float | None,
) -> ScaledLaplacian:
    bound: LambdaMax = "estimate" if lambda_max is None else lambda_max
    return _OPERATORS.lookup(
        (edge_index, edge_weight),
        (n, self_loops, symmetrize, bound),
        lambda: scaled_laplacian(edge_index, edge_weight, n, self_loops, bound, symmetrize),
    )


def _rows(table: Sequence[float], lambda_max: float, of_laplacian: bool) -> Table:
    rows = list(zip(table[0::3], table[1::3], table[2::3]))
    return laplacian_table(rows, lambda_max) if of_laplacian else rows


@torch.library.custom_op(
    "nfgnn::terms", mutates_args=(), schema=f"(Tensor x, {_SETTINGS}) -> Tensor", tags=_TAGS
)
def _terms(x: Tensor, *settings: Any) -> Tensor:
    *graph, table, of_laplacian = settings
    operator = _operator(x.shape[0], *graph)
    out: Tensor = backend(x).terms(x, operator, _rows(table, operator.lambda_max, of_laplacian))
    return out


@_terms.register_fake
def _(x: Tensor, *settings: Any) -> Tensor:
    return x.new_empty((len(settings[-2]) // 3 + 1, *x.shape))


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, edge_index, edge_weight, *ctx.settings = inputs
    # The gradient of the signal does not need the signal.
    signal = x if ctx.needs_input_grad[2] else None
    ctx.save_for_backward(signal, edge_index, edge_weight)


def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    signal, *edges = ctx.saved_tensors
    d_weight = None
    if signal is not None:
        d_x, d_weight = torch.ops.nfgnn.weight_gradient(grad, signal, *edges, *ctx.settings)
    else:
        d_x = torch.ops.nfgnn.adjoint(grad, *edges, *ctx.settings)
    return d_x, None, d_weight, None, None, None, None, None


_terms.register_autograd(_gradients, setup_context=_save)


@torch.library.custom_op(
    "nfgnn::adjoint", mutates_args=(), schema=f"(Tensor grad, {_SETTINGS}) -> Tensor", tags=_TAGS
)
def _adjoint(grad: Tensor, *settings: Any) -> Tensor:
    *graph, table, of_laplacian = settings
    operator = _operator(grad.shape[1], *graph)
    out: Tensor = backend(grad).adjoint(
        grad, operator, _rows(table, operator.lambda_max, of_laplacian)
    )
    return out


@_adjoint.register_fake
def _(grad: Tensor, *settings: Any) -> Tensor:
    return grad.new_empty(grad.shape[1:])


@torch.library.custom_op(
    "nfgnn::weight_gradient",
    mutates_args=(),
    schema=f"(Tensor grad, Tensor x, {_SETTINGS}) -> (Tensor, Tensor)",
    tags=_TAGS,
)
def _weight_gradient(
    grad: Tensor, x: Tensor, edge_index: Tensor, edge_weight: Tensor, *settings: Any
) -> tuple[Tensor, Tensor]:
    self_loops, symmetrize, lambda_max, table, of_laplacian = settings
    weight, scale, entries = differentiable_entries(
        edge_index, edge_weight, len(x), self_loops, symmetrize
    )
    rows = _rows(table, lambda_max, of_laplacian)
    d_x, d_values = entries.gradients(grad, x, rows)
    d_weight = torch.zeros_like(edge_weight)
    d_edges = edge_gradient(d_values, weight, scale, entries.pattern)
    d_weight[entries.pattern.edges] = d_edges.to(d_weight.dtype)
    return d_x.contiguous(), d_weight


@_weight_gradient.register_fake
def _(
    grad: Tensor, x: Tensor, edge_index: Tensor, edge_weight: Tensor, *settings: Any
) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), edge_weight.new_empty(edge_weight.shape)


@torch.library.custom_op(
    "nfgnn::degree",
    mutates_args=(),
    schema=f"(SymInt num_nodes, {_GRAPH} float? lambda_max) -> Tensor",
    tags=_TAGS,
)
def _degree(num_nodes: int, *graph: Any) -> Tensor:
    # A copy, because compiled code may reuse the memory of a result.
    return _operator(num_nodes, *graph).degree.clone()


@_degree.register_fake
def _(num_nodes: int, edge_index: Tensor, *graph: Any) -> Tensor:
    return edge_index.new_empty((num_nodes,), dtype=torch.float64)


@torch.library.custom_op(
    "nfgnn::mix",
    mutates_args=(),
    schema="(Tensor terms, float[] mixing, bool transposed) -> Tensor",
)
def _mix(terms: Tensor, mixing: Sequence[float], transposed: bool) -> Tensor:
    matrix = terms.new_tensor(mixing).view(len(terms), -1)
    if transposed:
        matrix = matrix.T
    mixed: Tensor = torch.tensordot(matrix, terms, dims=1)
    return mixed


@_mix.register_fake
def _(terms: Tensor, mixing: Sequence[float], transposed: bool) -> Tensor:
    return terms.new_empty(terms.shape)


def _save_mixing(ctx: Any, inputs: tuple[Tensor, list[float], bool], output: Tensor) -> None:
    _, ctx.mixing, ctx.transposed = inputs


def _mix_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return mix(grad, ctx.mixing, not ctx.transposed), None, None


_mix.register_autograd(_mix_gradient, setup_context=_save_mixing)
