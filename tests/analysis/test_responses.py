"""Frequency responses of known filters, and the subsets of the paper."""

import math

import pytest
import torch

from nfgnn.analysis import centre_frequency, filter_subsets, frequency_response
from nfgnn.spectral import Chebyshev
from nfgnn.spectral.response import high_pass, low_pass


def test_responses_of_known_filters() -> None:
    coefficients = torch.stack([Chebyshev().project(g, 3) for g in (low_pass, high_pass)])
    frequencies, curves = frequency_response(coefficients, "chebyshev", 11)
    assert torch.allclose(curves[0], (1 - frequencies / 2) ** 2)
    assert torch.allclose(curves[1], (frequencies / 2) ** 2)
    low, high = centre_frequency(frequencies, curves)
    assert float(low) < 0.5
    assert float(low + high) == pytest.approx(2)
    assert torch.allclose(frequency_response(coefficients[0], points=11)[1], curves[:1])


def test_filter_subsets() -> None:
    h1 = torch.tensor([0.8, 0.5, 0.5, 0.1, 0.1, math.nan])
    h2 = torch.tensor([0.1, 0.5, 0.9, 0.9, 0.5, 0.9])
    masks = filter_subsets(h1, h2)
    assert {name: mask.nonzero().flatten().tolist() for name, mask in masks.items()} == {
        "low-pass": [0],
        "band-pass": [1],
        "high-pass": [3],
    }
