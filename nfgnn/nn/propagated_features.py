"""Propagated features that depend on no parameter, computed once."""

from collections.abc import Callable, Hashable
from typing import TypeVar

from torch import Tensor

from nfgnn.spectral import ScaledLaplacian
from nfgnn.tensor_cache import TensorCache

T = TypeVar("T")

_CACHE = TensorCache()


def computed_once(
    x: Tensor, operators: tuple[ScaledLaplacian, ...], options: Hashable, make: Callable[[], T]
) -> T:
    """Return a value that depends only on features and graph, cached for the life of both.

    If features or edge weights require a gradient, it is computed anew at every call.

    Args:
        x: dense features. The value must not contain them, because the cache would then keep them
            alive.
        operators: the operators that propagate them.
        options: what else determines the value.
        make: computes the value.
    """
    if x.requires_grad or any(operator.entries is not None for operator in operators):
        return make()

    tensors: list[Tensor | None] = [x]
    for operator in operators:
        tensors += [operator.indices, operator.weight, operator.scale]
    bounds = tuple(operator.lambda_max for operator in operators)
    return _CACHE.lookup(tuple(tensors), (options, bounds), make)
