"""The gate from attention against a loop over nodes and heads."""

import torch
from conftest import random_graph

from nfgnn.nn import SpectralConv

N, HEADS, K = 20, 2, 3


def test_coefficients_are_attention_over_the_terms_of_a_node() -> None:
    torch.manual_seed(0)
    edge_index = random_graph(N, 0.3, 0)
    conv = SpectralConv(6, 4, K=K, gate="attention", heads=HEADS, basis="chebyshev").double()
    gate = conv.gate
    for parameter in gate.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(N, 6, dtype=torch.double)
    operator = conv.operator(x, edge_index, None)
    terms = conv.order_terms(x, operator)
    found = gate(terms, operator)
    logs = torch.bincount(edge_index[0], minlength=N).double().log1p()
    logs = (logs - logs.mean()) / logs.std(unbiased=False)
    width = gate.key_channels
    for i in range(N):
        query = gate.query.weight @ torch.cat([x[i], logs[i : i + 1]]) + gate.query.bias
        for head in range(HEADS):
            part = slice(head * width, (head + 1) * width)
            scores = torch.stack(
                [
                    query[part] @ (gate.key.weight @ terms[k][i])[part] / width**0.5
                    + gate.beta[k, head]
                    for k in range(K + 1)
                ]
            )
            expected = (K + 1) * scores.exp() / scores.exp().sum()
            torch.testing.assert_close(found[i, :, head], expected, rtol=1e-5, atol=1e-6)


def test_the_query_learns_from_the_start() -> None:
    """The coefficients start at 1, which must not be a stationary point."""
    torch.manual_seed(0)
    conv = SpectralConv(6, 4, K=2, gate="attention", heads=HEADS)
    conv(torch.randn(N, 6), random_graph(N, 0.3, 0)).square().sum().backward()
    assert conv.gate.query.weight.grad.abs().max() > 0
