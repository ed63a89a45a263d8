"""Predictions of imaginary models on validation nodes."""

import torch
from torch import Tensor


def predictions(classes: list[int], num_classes: int = 2, confidence: float = 0.8) -> Tensor:
    """Return probabilities with one confident class per node."""
    rest = (1 - confidence) / (num_classes - 1)
    shares = torch.full((len(classes), num_classes), rest)
    shares[torch.arange(len(classes)), torch.tensor(classes)] = confidence
    return shares


def noisy_predictions(labels: Tensor, num_classes: int, signal: float, seed: int) -> Tensor:
    """Return the softmax of random logits, with ``signal`` added for the true class."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(len(labels), num_classes, generator=generator)
    logits[torch.arange(len(labels)), labels] += signal
    return logits.softmax(-1)
