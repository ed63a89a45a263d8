"""Weights of the training nodes in the loss."""

import torch
from torch import Tensor


def balanced_class_weights(y: Tensor) -> Tensor:
    """Return n / (C n_c) for every class c: scikit-learn's rule ``class_weight="balanced"``.

    n is the number of nodes, n_c that of class c, and C the number of classes that have nodes. A
    class without nodes has weight 0.
    """
    counts = torch.bincount(y).double()
    present = counts > 0
    weights = y.numel() / (present.sum() * counts)
    return torch.where(present, weights, 0.0)


def balanced_weights(y: Tensor) -> Tensor:
    """Return the weight of every node. Their mean is 1."""
    return balanced_class_weights(y).float()[y]
