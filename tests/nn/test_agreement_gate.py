"""The agreement gate against a dense transcription of its formula; the adjacency branch."""

import pytest
import torch
from conftest import random_graph
from helpers.dense import adjacency
from helpers.dense import scaled_laplacian as dense_laplacian

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.errors import UserError
from nfgnn.nn import NFConv, PolyConv
from nfgnn.nn.models import NFGNN
from nfgnn.spectral import BASES, neighbourhood_means, resolve_basis, scaled_laplacian

N, CHANNELS, K = 24, 4, 5


def graph_with_an_isolated_node() -> torch.Tensor:
    edge_index = random_graph(N, 0.2, 0)
    return edge_index[:, (edge_index != 7).all(0)]


def literal(
    conv: NFConv, x: torch.Tensor, edge_index: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Node by node in float64, from the formulas of the docstring."""
    A, X = adjacency(edge_index, N), x.double()
    t, U = torch.linalg.eigh(dense_laplacian(edge_index, N))
    p = resolve_basis(conv.basis).evaluate(t, K)
    terms = [U @ torch.diag(p[:, k]) @ U.T @ X for k in range(K + 1)]
    a = torch.zeros(N, K + 1, dtype=torch.float64)
    log_degree = torch.log(1 + A.sum(1))
    for i in range(N):
        a[i, 0] = (log_degree[i] - log_degree.mean()) / log_degree.std(unbiased=False)
        for k in range(1, K + 1):
            own, other = X[i] - X[i].mean(), terms[k][i] - terms[k][i].mean()
            a[i, k] = own @ other / (own.norm() * other.norm()) if other.norm() > 1e-6 else 0.0
    P = A / A.sum(1, keepdim=True).clamp(min=1)
    H = torch.cat([a, P @ a, P @ P @ a], 1)
    w1, b1, w2, b2 = (
        v.detach().double()
        for lin in (conv.gate.lin1, conv.gate.lin2)
        for v in (lin.weight, lin.bias)
    )
    shares = ((H @ w1.T + b1).clamp(min=0) @ w2.T + b2).softmax(1)
    psi = shares @ conv.gate.gamma.detach().double().T
    return sum(psi[:, k, None] * terms[k] for k in range(K + 1)), psi


@pytest.mark.parametrize("basis", BASES)
def test_equals_its_formula(basis: str) -> None:
    torch.manual_seed(0)
    edge_index, x = graph_with_an_isolated_node(), torch.randn(N, CHANNELS, dtype=torch.float64)
    conv = NFConv(CHANNELS, K=K, rank=3, basis=basis, gate="agreement").double()
    torch.nn.init.normal_(conv.gate.gamma)
    out, psi = conv(x, edge_index, return_coefficients=True)
    expected_out, expected_psi = literal(conv, x, edge_index)
    torch.testing.assert_close(psi, expected_psi)
    torch.testing.assert_close(out, expected_out)
    assert torch.linalg.matrix_rank(psi, rtol=1e-8) <= 3


def test_starts_at_the_initial_filter_whatever_its_weights() -> None:
    x, edge_index = torch.randn(N, CHANNELS), random_graph(N, 0.2, 0)
    nf, poly = NFConv(CHANNELS, K=K, rank=4, gate="agreement", alpha=0.3), PolyConv(K=K, alpha=0.3)
    torch.testing.assert_close(nf(x, edge_index), poly(x, edge_index), rtol=1e-4, atol=1e-5)


def test_gradients_of_its_parameters() -> None:
    torch.manual_seed(0)
    conv = NFConv(3, K=3, rank=2, gate="agreement").double()
    torch.nn.init.normal_(conv.gate.gamma)
    x, edge_index = torch.randn(12, 3, dtype=torch.float64), random_graph(12, 0.4, 0)
    names, values = zip(*conv.named_parameters())

    def call(*parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(conv, dict(zip(names, parameters)), (x, edge_index))

    assert torch.autograd.gradcheck(call, values)


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_neighbourhood_means(weighted: bool, self_loops: bool) -> None:
    edge_index, x = graph_with_an_isolated_node(), torch.randn(N, 3, dtype=torch.float64)
    key = (
        edge_index.min(0).values * N + edge_index.max(0).values
    )  # the same weight in both directions
    weight = 0.5 + (key % 7).double() if weighted else None
    A = adjacency(edge_index, N, weight) + self_loops * torch.eye(N)
    P = A / A.sum(1, keepdim=True).clamp(min=1e-12)
    means = neighbourhood_means(x, scaled_laplacian(edge_index, weight, N, self_loops), 2)
    torch.testing.assert_close(means, torch.stack([x, P @ x, P @ P @ x]))


@pytest.mark.parametrize("link", ["raw", "row"])
def test_link_branch_reads_adjacency_rows(link: str) -> None:
    torch.manual_seed(0)
    edge_index, x = graph_with_an_isolated_node(), torch.randn(N, 6)
    model = NFGNN(6, CHANNELS, hidden_channels=8, link=link, num_nodes=N).eval()
    mlp = model.mlp
    A = adjacency(edge_index, N).float()
    A = A / A.sum(1, keepdim=True).clamp(min=1) if link == "row" else A
    h = x @ mlp.lins[0].weight.T + mlp.lins[0].bias + A @ mlp.lin_link.weight.T
    h = (
        (h - h.mean(0)) / (h.var(0, unbiased=False) + 1e-5).sqrt()
    ).relu()  # the norm's scale and shift are 1 and 0
    torch.testing.assert_close(
        model.scores(x, edge_index), h @ mlp.lins[1].weight.T + mlp.lins[1].bias
    )


def test_links_in_the_scores_are_a_logistic_regression_beside_the_mlp() -> None:
    torch.manual_seed(0)
    edge_index, x = graph_with_an_isolated_node(), torch.randn(N, 6)
    model = NFGNN(6, CHANNELS, hidden_channels=8, link="scores", num_nodes=N).eval()
    plain = NFGNN(6, CHANNELS, hidden_channels=8).eval()
    plain.mlp.load_state_dict(model.mlp.state_dict(), strict=False)
    links = adjacency(edge_index, N).float() @ model.mlp.lin_link.weight.T
    torch.testing.assert_close(model.scores(x, edge_index), plain.scores(x) + links)
    with pytest.raises(ValueError, match="needs num_nodes"):
        NFGNN(6, CHANNELS, link="scores")


def test_weights_of_nodes_do_not_apply_to_another_graph() -> None:
    data = split(load_dataset("mixed", num_nodes=60), "full", 0)
    classifier = NodeClassifier("NFGNN", link="raw", epochs=2).fit(data)
    with pytest.raises(UserError, match="it has 60 nodes, this graph has 70"):
        classifier.predict(load_dataset("mixed", num_nodes=70))
    with pytest.raises(UserError, match="unknown link 'both'"):
        NodeClassifier("NFGNN", link="both", epochs=2).fit(data)
