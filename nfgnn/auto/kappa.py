"""Cohen's kappa: by how much predictions agree with labels beyond chance."""

import torch
from torch import Tensor

from nfgnn.training import Metric


def _kappa(probabilities: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Return (a - e) / (1 - e) with the accuracy a and the accuracy e of independent predictions.

    Independent predictions have the class shares of the given ones. Kappa is 0 for a constant
    prediction, however many nodes are of its class.
    """
    num_classes = probabilities.shape[-1]
    predicted = probabilities.argmax(-1)
    total = weight.sum(-1)
    accuracy = (weight * (predicted == y)).sum(-1) / total
    expected = torch.zeros_like(accuracy)
    for label in range(num_classes):
        predicted_share = (weight * (predicted == label)).sum(-1) / total
        expected = expected + predicted_share * (weight * (y == label)).sum(-1) / total
    # Where all nodes are of one class and are predicted so, nothing is beyond chance.
    return torch.where(expected < 1, (accuracy - expected) / (1 - expected).clamp(min=1e-12), 0.0)


KAPPA = Metric("kappa", "Cohen's kappa", True, _kappa, uses="class")
