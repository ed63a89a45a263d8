"""Autograd functions that are cheap to call."""

import inspect
from typing import Any, TypeVar

import torch
from torch.autograd import Function

F = TypeVar("F", bound=type[Function])


def transforming() -> bool:
    """Whether a transformation such as ``vmap`` or ``grad`` is under way."""
    return bool(torch._C._are_functorch_transforms_active())


def quick(function: F) -> F:
    """Class decorator: spare the call what torch otherwise works out every single time.

    Where no transformation such as ``vmap`` is under way, ``apply`` goes straight to autograd; elsewhere the signature
    of ``forward`` is remembered. Either takes longer than a sparse product on a small graph.
    """
    function.forward.__signature__ = inspect.signature(function.forward)  # type: ignore[attr-defined]

    transformed: Any = Function.apply

    def apply(cls: Any, *args: Any) -> Any:
        if transforming():
            return transformed.__func__(cls, *args)
        return super(Function, cls).apply(*args)

    function.apply = classmethod(apply)  # type: ignore[method-assign, assignment]
    return function
