"""Helpers for custom autograd functions: cheap calls, and many runs at once under ``vmap``.

Training many runs at once maps the model over their weights with :func:`torch.vmap`. Where the
mapped model meets a sparse product, the runs become columns of one dense matrix, so that the graph
is read once for all of them.
"""

import inspect
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import Function

F = TypeVar("F", bound=type[Function])


def transforming() -> bool:
    """Return whether a transformation such as ``vmap`` or ``grad`` is active."""
    return bool(torch._C._are_functorch_transforms_active())


def fast_apply(function: F) -> F:
    """Class decorator: make ``apply`` of an autograd function cheap.

    Without an active transformation, ``apply`` skips the dispatch of ``torch.func``. Under one,
    torch inspects the signature of ``forward``, which is stored here to do so only once. On a small
    graph either overhead exceeds the time of a sparse product.

    Autocast is switched off inside, because torch has no sparse products in half precision.
    """
    forward: Any = function.forward
    forward.__signature__ = inspect.signature(forward)
    transformed: Any = Function.apply

    def apply(cls: Any, *args: Any) -> Any:
        if transforming():
            return transformed.__func__(cls, *args)
        if torch._C._is_any_autocast_enabled():
            with torch._C._DisableAutocast():
                return super(Function, cls).apply(*args)
        return super(Function, cls).apply(*args)

    decorated: Any = function
    decorated.apply = classmethod(apply)
    return function


def fold_columns(x: Tensor, batch_dim: int | None) -> Tensor:
    """Return matrices ``[n, c]``, batched along ``batch_dim``, as ``[n, batch · c]``."""
    assert batch_dim is not None
    return x.movedim(batch_dim, -2).flatten(-2)


def unfold_columns(x: Tensor, batch: int) -> Tensor:
    """Return ``[…, n, batch · c]`` as ``[…, n, batch, c]``: the inverse of :func:`fold_columns`."""
    return x.view(*x.shape[:-1], batch, x.shape[-1] // batch)


def join_runs(
    batch: int,
    in_dims: tuple[int | None, ...],
    inputs: tuple[Tensor, ...],
    run_dims: tuple[int, ...],
) -> list[Tensor]:
    """Merge the batch of a ``vmap`` into the dimension that every input has for runs.

    Args:
        batch: size of the batch.
        in_dims: the dimension of every input that ``vmap`` maps over, or ``None``.
        inputs: the inputs.
        run_dims: the dimension of every input that counts runs.
    """
    joined = []
    for dim, value, run in zip(in_dims, inputs, run_dims):
        if dim is None:
            shape = (*value.shape[:run], batch, *value.shape[run:])
            value = value.unsqueeze(run).expand(shape)
        else:
            value = value.movedim(dim, run)
        joined.append(value.flatten(run, run + 1))
    return joined
