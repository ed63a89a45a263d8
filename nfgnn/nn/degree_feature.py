"""The degree of nodes as an input of gates."""

import torch
from torch import Tensor

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
        mean = _graph_means(values, batch)
        deviation = _graph_means((values - mean).square(), batch).sqrt()
    # What is left of values that do not vary is rounding error.
    varies = deviation > 1e-5
    return (values - mean) / deviation.clamp(min=1e-6) * varies


def _graph_means(values: Tensor, batch: Tensor) -> Tensor:
    """Return the mean over its graph for every node, ``[n]``."""
    # There are at most as many graphs as nodes. Counting them would wait for the device.
    total = torch.zeros_like(values).index_add(0, batch, values)
    count = torch.zeros_like(values).index_add(0, batch, torch.ones_like(values))
    return (total / count.clamp(min=1)).index_select(0, batch)
