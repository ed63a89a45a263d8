"""Checks of the edges of a graph and of the bound of its eigenvalues."""

import math
from typing import Any, Literal, NoReturn

import torch
from torch import Tensor

from nfgnn.errors import UserError

LambdaMax = float | Literal["estimate"]
"""The assumed largest eigenvalue of the Laplacian: a number, or estimated by the Lanczos method."""


def check_tensors(edge_index: Any, edge_weight: Any) -> None:
    """Refuse edges that are not tensors, such as matrices of other packages, arrays and lists."""
    if not isinstance(edge_index, Tensor):
        raise UserError(
            f"edge_index is of the type {type(edge_index).__name__}, but a tensor of shape "
            "[2, num_edges] is needed: convert a SparseTensor with "
            "torch_geometric.utils.to_edge_index(matrix)[0], an array or a list with "
            "torch.as_tensor(edges)"
        )
    if edge_weight is not None and not isinstance(edge_weight, Tensor):
        raise UserError(
            f"edge_weight is of the type {type(edge_weight).__name__}, but a tensor of shape "
            "[num_edges] is needed: convert it with torch.as_tensor(weights)"
        )


def check_edges(edge_index: Tensor, edge_weight: Tensor | None, n: int) -> None:
    """Refuse tensors that do not describe the edges of a graph with n nodes.

    Directed edges are accepted, see :func:`check_symmetric`.
    """
    check_tensors(edge_index, edge_weight)
    if edge_index.layout != torch.strided:
        raise UserError(
            "edge_index is a sparse matrix, but the indices of the edges are needed: pass "
            "torch_geometric.utils.to_edge_index(matrix)[0]"
        )
    shape = tuple(edge_index.shape)
    if len(shape) != 2 or shape[0] != 2:
        raise UserError(f"edge_index must have the shape [2, num_edges], got {list(shape)}")
    if edge_index.is_floating_point() or edge_index.dtype == torch.bool:
        raise UserError(
            "edge_index contains node indices and must have an integer type, got "
            f"{edge_index.dtype}"
        )
    if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= n):
        raise UserError(
            f"edge_index contains a node outside of 0…{n - 1}: its values range from "
            f"{int(edge_index.min())} to {int(edge_index.max())}, and x has {n} rows"
        )
    if edge_weight is not None:
        _check_weights(edge_weight, shape[1])


def _check_weights(edge_weight: Tensor, count: int) -> None:
    if edge_weight.shape != (count,):
        raise UserError(
            f"edge_weight must have one number per edge, [{count}], got {list(edge_weight.shape)}"
        )
    if torch._C._functorch.is_functorch_wrapped_tensor(edge_weight):
        return  # Inside of a transformation such as vmap, values cannot be read.
    if not bool(edge_weight.detach().isfinite().all()):
        raise UserError("edge_weight holds NaN or infinite values: every weight is a number")
    if edge_weight.numel() and float(edge_weight.detach().min()) < 0:
        raise UserError(
            "edge_weight must not be negative: the normalised Laplacian needs non-negative degrees"
        )


def check_lambda_max(value: Any) -> None:
    """Refuse a largest eigenvalue that is neither a positive number nor ``"estimate"``."""
    if isinstance(value, str):
        valid = value == "estimate"
    else:
        try:
            valid = 0 < float(value) < math.inf
        except (TypeError, ValueError):
            valid = False
    if not valid:
        raise UserError(
            f'lambda_max = {value!r} is not valid: pass a positive number or "estimate"'
        )


def mirrored_keys(key: Tensor, n: int) -> Tensor:
    """Return the keys of the transposed entries."""
    return key % max(n, 1) * n + key // max(n, 1)


def check_symmetric(key: Tensor, weight: Tensor | None, n: int) -> None:
    """Refuse a directed graph: the backward pass relies on a symmetric operator."""
    mirrored = mirrored_keys(key, n)
    if weight is None:
        same = torch.equal(torch.unique(mirrored), key)
    else:
        mirrored, order = torch.sort(mirrored)
        same = torch.equal(mirrored, key) and torch.allclose(weight[order], weight)
    if not same:
        refuse_directed()


def refuse_directed() -> NoReturn:
    raise UserError(
        "edge_index must contain both directions of every edge with equal weight, because a "
        "spectral filter is defined for undirected graphs: pass symmetrize=True to the layer, "
        "or use torch_geometric.utils.to_undirected"
    )


def refuse_estimate() -> NoReturn:
    raise UserError(
        'edge_weight requires a gradient, which lambda_max="estimate" does not have: give '
        "lambda_max as a number, or detach edge_weight"
    )
