"""Attention over terms against its formula, node by node."""

import pytest
import torch
from torch.nn.functional import leaky_relu

from nfgnn.nn import TermAttention


@pytest.mark.parametrize("heads", [1, 3])
def test_equals_the_formula(heads: int) -> None:
    torch.manual_seed(0)
    terms = torch.randn(5, 4, 7, dtype=torch.float64)
    layer = TermAttention(7, 6, K=3, heads=heads).double()
    width = 6 // heads
    expected = torch.zeros(5, 6, dtype=torch.float64)
    for i in range(5):
        hidden = torch.stack([terms[i, k] @ layer.weight[k] for k in range(4)])
        for head in range(heads):
            part = hidden[:, head * width : (head + 1) * width]
            scores = part[0] @ layer.own[head] + part @ layer.other[head]
            share = leaky_relu(scores, 0.2).softmax(0)
            torch.testing.assert_close(layer.weights(terms)[i, :, head], share)
            expected[i, head * width : (head + 1) * width] = share @ part
    torch.testing.assert_close(layer(terms), expected)


def test_heads_must_divide_the_channels() -> None:
    with pytest.raises(ValueError, match="heads = 3 does not divide out_channels = 8"):
        TermAttention(4, 8, K=2, heads=3)
