"""The gate with coefficients shared by clusters, against its formula and its limit cases."""

import torch
from conftest import random_graph

from nfgnn.nn import SpectralConv
from nfgnn.nn.head_gates.agreement_head_gate import agreement

N, HEADS, K = 20, 2, 2


def random_conv() -> SpectralConv:
    torch.manual_seed(0)
    conv = SpectralConv(6, 4, K=K, gate="cluster", heads=HEADS).double()
    for parameter in conv.gate.parameters():
        torch.nn.init.normal_(parameter)
    return conv


def coefficients(conv: SpectralConv) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the coefficients and the hidden layer Z."""
    x = torch.randn(N, 6, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    operator = conv.operator(x, random_graph(N, 0.3, 0), None)
    terms = conv.order_terms(x, operator)
    gate = conv.gate
    hidden = (agreement(terms, HEADS, operator) @ gate.lin1.weight.T + gate.lin1.bias).clamp(min=0)
    return gate(terms, operator), hidden


def test_a_node_mixes_the_coefficients_of_the_clusters() -> None:
    conv = random_conv()
    gate = conv.gate
    found, hidden = coefficients(conv)
    for i in range(N):
        scores = gate.lin2.weight @ hidden[i] + gate.lin2.bias
        shares = scores[:-1].exp() / scores[:-1].exp().sum()
        strength = 1 / (1 + (-scores[-1]).exp())
        change = sum(shares[c] * gate.delta[c].view(K + 1, HEADS) for c in range(gate.clusters))
        torch.testing.assert_close(found[i], 1 + strength * change)


def test_without_strength_all_nodes_have_the_global_filter() -> None:
    conv = random_conv()
    with torch.no_grad():
        conv.gate.lin2.weight[-1] = 0
        conv.gate.lin2.bias[-1] = -50
    found, _ = coefficients(conv)
    torch.testing.assert_close(found, torch.ones_like(found))


def test_a_certain_assignment_gives_every_node_the_coefficients_of_one_cluster() -> None:
    conv = random_conv()
    with torch.no_grad():
        conv.gate.lin2.weight *= 1000
        conv.gate.lin2.weight[-1] = 0
        conv.gate.lin2.bias[-1] = 50
    found, _ = coefficients(conv)
    clusters = 1 + conv.gate.delta.view(-1, K + 1, HEADS)
    distances = (found[:, None] - clusters).flatten(2).norm(dim=-1)
    assert distances.min(1).values.max() < 1e-6
    assert len(distances.argmin(1).unique()) > 1
