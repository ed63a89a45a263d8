"""Algorithm 2 against the loops of the paper, and against the other order of the layers."""

import pytest
import torch
from conftest import random_graph
from helpers import dense
from torch import Tensor

from nfgnn.nn import GATES, MODELS, NFConv, Scalable, ScalableNFGNN
from nfgnn.nn.models.bernnet import ScalableBernNet
from nfgnn.nn.models.gprgnn import ScalableGPRGNN
from nfgnn.nn.models.polygnn import ScalablePolyGNN
from nfgnn.nn.models.sgc import SGC, ScalableSGC
from nfgnn.spectral import BASES, resolve_basis

N, F, C, K = 30, 5, 3, 4
SCALABLE = [name for name, entry in MODELS.items() if issubclass(entry.model, Scalable)]


@pytest.fixture
def graph() -> tuple[Tensor, Tensor]:
    x = torch.randn(N, F, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return x, random_graph(N, 0.3, 0)


def algorithm_2(model: ScalableNFGNN, x: Tensor, L: Tensor) -> Tensor:
    """The paper's loops, node by node, with the loop bound K."""
    W, Gamma = model.prop.gate.weight, model.prop.gate.gamma
    X = [x, L @ x]
    for k in range(2, K + 1):
        X.append(2 * L @ X[k - 1] - X[k - 2])
    Z = torch.zeros_like(x)
    for k in range(K + 1):
        H = torch.sigmoid(X[k] @ W)
        for i in range(N):
            eta = (H[i] * Gamma[k]).sum()
            Z[i] = eta * X[k][i] + Z[i]
    *hidden, last = model.mlp.lins
    for lin in hidden:
        Z = torch.relu(Z @ lin.weight.T + lin.bias)
    return Z @ last.weight.T + last.bias


@pytest.mark.parametrize("num_layers", [1, 2, 4])
@pytest.mark.parametrize("rank", [1, 3])
def test_equals_algorithm_2(graph, num_layers: int, rank: int) -> None:
    x, edge_index = graph
    torch.manual_seed(1)
    model = ScalableNFGNN(F, C, 8, num_layers, K=K, rank=rank, init="random").double().eval()
    expected = algorithm_2(model, x, dense.scaled_laplacian(edge_index, N))
    torch.testing.assert_close(model(x, edge_index), expected)


def test_gradients_are_those_of_algorithm_2(graph) -> None:
    x, edge_index = graph
    model = ScalableNFGNN(F, C, 8, K=K, rank=2).double().eval()
    parameters = list(model.parameters())
    ours = torch.autograd.grad(model(x, edge_index).square().sum(), parameters)
    loops = algorithm_2(model, x, dense.scaled_laplacian(edge_index, N))
    for a, b in zip(ours, torch.autograd.grad(loops.square().sum(), parameters)):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", SCALABLE)
def test_rows_in_any_batches_are_the_whole(graph, name: str) -> None:
    x, edge_index = graph
    model = MODELS[name].model(F, C).double().eval()
    rows, order = model.rows(x, edge_index), torch.randperm(N)
    batches = torch.cat([model.forward_rows(rows[part]) for part in order.split(7)])
    torch.testing.assert_close(batches, model(x, edge_index)[order])
    psi = torch.cat([model.row_coefficients(rows[part]) for part in order.split(7)])
    torch.testing.assert_close(psi, model.coefficients(x, edge_index)[order])


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("gate", [name for name, form in GATES.items() if form.rowwise])
def test_the_filter_of_rows_is_the_layer(graph, basis: str, gate: str) -> None:
    x, edge_index = graph
    model = ScalableNFGNN(F, C, K=K, basis=basis, gate=gate).double()
    out, psi = model.prop(x, edge_index, return_coefficients=True)
    rows = model.rows(x, edge_index)
    torch.testing.assert_close(model.prop.row_coefficients(rows), psi)
    torch.testing.assert_close(model.prop.filter_rows(rows), out)


@pytest.mark.parametrize("gate", [name for name, form in GATES.items() if not form.rowwise])
def test_a_gate_that_needs_the_graph_is_refused(gate: str) -> None:
    with pytest.raises(
        ValueError, match="needs the graph, but a scalable model only sees rows: choose term"
    ):
        ScalableNFGNN(F, C, K=K, rank=3, gate=gate)


def test_global_filters_are_what_their_papers_say(graph) -> None:
    x, edge_index = graph
    plain = dense.normalised(dense.adjacency(edge_index, N))
    loops = dense.normalised(dense.adjacency(edge_index, N) + torch.eye(N))
    gpr = ScalableGPRGNN(F, C, num_layers=1, K=K, alpha=0.2).double().eval()
    walks = sum(g * torch.linalg.matrix_power(loops, k) for k, g in enumerate(gpr.prop.gamma))
    torch.testing.assert_close(gpr(x, edge_index), gpr.mlp(walks @ x))
    bern = ScalableBernNet(F, C, num_layers=1, K=K).double().eval()
    with torch.no_grad():
        bern.prop.gamma.copy_(torch.tensor([0.5, -1, 2, -0.1, 0.3]))
    L, identity, total = torch.eye(N) - plain, torch.eye(N).double(), 0
    for k, theta in enumerate(bern.prop.gamma):
        binomial = torch.tensor([1, 4, 6, 4, 1])[k]
        power = torch.linalg.matrix_power
        total = total + theta.relu() * binomial / 2**K * power(2 * identity - L, K - k) @ power(
            L.double(), k
        )
    torch.testing.assert_close(bern(x, edge_index), bern.mlp(total @ x))
    poly = ScalablePolyGNN(F, C, num_layers=1, K=K).double().eval()
    response = (
        resolve_basis("chebyshev").evaluate(torch.linalg.eigvalsh(-plain), K) @ poly.prop.gamma
    )
    U = torch.linalg.eigh(-plain).eigenvectors
    torch.testing.assert_close(
        poly(x, edge_index), poly.mlp(dense.function_of(plain, response, U) @ x)
    )


def test_scalable_sgc_is_sgc(graph) -> None:
    x, edge_index = graph
    ours, theirs = ScalableSGC(F, C, K=3).double(), SGC(F, C, K=3).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.mlp.lins[0].weight)
        theirs.bias.copy_(ours.mlp.lins[0].bias)
    torch.testing.assert_close(ours(x, edge_index), theirs(x, edge_index))


def test_batch_norm_stands_between_hidden_maps_and_their_nonlinearity(graph) -> None:
    x, edge_index = graph
    model = ScalableNFGNN(F, C, 8, 3, dropout=0.0, batch_norm=True, K=K).double()
    z = model.prop(x, edge_index)
    for lin in model.mlp.lins[:-1]:
        z = z @ lin.weight.T + lin.bias
        z = torch.relu((z - z.mean(0)) / (z.var(0, correction=0) + 1e-5).sqrt())
    last = model.mlp.lins[-1]
    torch.testing.assert_close(model.train()(x, edge_index), z @ last.weight.T + last.bias)


def test_without_a_gate_it_is_the_same_filter_for_all(graph) -> None:
    x, edge_index = graph
    model, gated = ScalablePolyGNN(F, C, K=K).double(), NFConv(F, K=K).double()
    with torch.no_grad():
        gated.gate.weight.zero_()
    torch.testing.assert_close(
        model.coefficients(x, edge_index), gated(x, edge_index, return_coefficients=True)[1]
    )
