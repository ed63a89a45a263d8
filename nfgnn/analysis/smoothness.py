r"""What the features say about the graph without any label: their mean graph frequency.

.. math:: \bar λ = \frac{\operatorname{tr} X^T L X}{\operatorname{tr} X^T X}, \qquad X \text{ with centred columns}

Below 1: linked nodes resemble each other in their features; about 1: links say nothing about features; above 1: linked
nodes differ. Features of many columns are first projected onto a few random directions, which leaves both traces
unchanged in the mean, so memory is n × 64 however wide (and sparse) they are.
"""

import math

import torch
from torch import Tensor

from nfgnn.spectral import CSR, scaled_laplacian

_COLUMNS = 64


def feature_frequency(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, seed: int = 0
) -> float:
    """The mean frequency of the features, from 0 to 2; NaN where they are constant."""
    features = _few_columns(x, seed)
    features = features - features.mean(0)
    energy = features.double().square().sum()
    if float(energy) < 1e-12 * max(1, features.numel()):
        return math.nan
    product = scaled_laplacian(edge_index, edge_weight, len(features)) @ features  # (L - I) X
    return float(1 + (features.double() * product.double()).sum() / energy)


def _few_columns(x: Tensor, seed: int) -> Tensor:
    if x.shape[1] <= _COLUMNS:
        return x if x.layout == torch.strided else x.to_dense()
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(x.shape[1], _COLUMNS, generator=generator)
    return x @ directions if x.layout == torch.strided else CSR.from_tensor(x) @ directions
