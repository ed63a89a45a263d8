"""Autograd functions that are cheap to call."""

import inspect
from typing import TypeVar

from torch.autograd import Function

F = TypeVar("F", bound=type[Function])


def quick(function: F) -> F:
    """Class decorator: remember the signature of ``forward``, which torch otherwise works out in every single call.

    That takes longer than a sparse product on a small graph.
    """
    function.forward.__signature__ = inspect.signature(function.forward)  # type: ignore[attr-defined]
    return function
