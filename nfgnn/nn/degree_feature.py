"""The degree of nodes as an input of gates."""

import torch
from torch import Tensor

from nfgnn.errors import UserError
from nfgnn.spectral import ScaledLaplacian


def degree_feature(operator: ScaledLaplacian, dtype: torch.dtype, batch: Tensor | None) -> Tensor:
    """Return log(1 + degree) of every node, ``[n]``, standardised over the nodes of its graph.

    No gradient flows to edge weights. If all degrees of a graph are equal, the result is zero.

    Args:
        operator: the operator of the graph.
        dtype: type of the result.
        batch: the graph of every node, ``[n]``; ``None`` for a single graph.
    """
    values = operator.degree.to(dtype).log1p()
    mean: Tensor
    if batch is None:
        mean = values.mean()
        deviation = values.std(unbiased=False)
    else:
        _check_numbers(batch)
        mean = _graph_means(values, batch)
        deviation = _graph_means((values - mean).square(), batch).sqrt()
    # What is left of values that do not vary is rounding error.
    varies = deviation > 1e-5
    return (values - mean) / deviation.clamp(min=1e-6) * varies


def _check_numbers(batch: Tensor) -> None:
    """Refuse numbers of graphs that are negative or not below the number of nodes."""
    # On a GPU, reading the numbers would wait for the device.
    if batch.is_cuda or torch.compiler.is_compiling() or not batch.numel():
        return
    for number in (int(batch.min()), int(batch.max())):
        if not 0 <= number < batch.numel():
            raise UserError(
                f"batch contains the graph number {number}, but with {batch.numel()} nodes it must "
                f"be from 0 to {batch.numel() - 1}: renumber the graphs with "
                "torch.unique(batch, return_inverse=True)[1]"
            )


def _graph_means(values: Tensor, batch: Tensor) -> Tensor:
    """Return the mean over its graph for every node, ``[n]``."""
    # There are at most as many graphs as nodes. Counting them would wait for the device.
    total = torch.zeros_like(values).index_add(0, batch, values)
    count = torch.zeros_like(values).index_add(0, batch, torch.ones_like(values))
    return (total / count.clamp(min=1)).index_select(0, batch)
