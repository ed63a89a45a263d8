"""The node-oriented filter against a literal, dense transcription of Algorithm 1."""

import pytest
import torch
from conftest import random_graph
from helpers.dense import scaled_laplacian as dense_laplacian
from hypothesis import given, settings
from hypothesis import strategies as st

from nfgnn.nn import GATES, NFConv
from nfgnn.spectral import BASES, resolve_basis

N, CHANNELS = 30, 4
ROWWISE = [name for name, gate in GATES.items() if gate.rowwise]
SHARES = {
    "term": lambda gate, x0, xk, k, W: torch.sigmoid(xk @ W),
    "input": lambda gate, x0, xk, k, W: torch.sigmoid(x0 @ W),
    "published": lambda gate, x0, xk, k, W: (
        torch.tanh(xk @ W[k] + gate.bias.detach().double()[k]) / gate.rank
    ),
}
"""The share of each base filter that a node takes, by gate: from its rows of X and X^(k)."""


def algorithm_1(
    conv: NFConv, name: str, x: torch.Tensor, edge_index: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Node by node and order by order, in float64, from the parameters of the layer."""
    L = dense_laplacian(edge_index, N)
    t, U = torch.linalg.eigh(L)
    p = resolve_basis(conv.basis).evaluate(t, conv.K)
    gate = conv.gate
    W, gamma = gate.weight.detach().double(), gate.gamma.detach().double()
    Z, psi = (
        torch.zeros(N, CHANNELS, dtype=torch.float64),
        torch.zeros(N, conv.K + 1, dtype=torch.float64),
    )
    X0 = x.double()
    for k in range(conv.K + 1):
        Xk = U @ torch.diag(p[:, k]) @ U.T @ X0
        for i in range(N):
            h = SHARES[name](gate, X0[i], Xk[i], k, W)
            psi[i, k] = (h * gamma[k]).sum()
            Z[i] += psi[i, k] * Xk[i]
    return Z, psi


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("gate", ROWWISE)
@pytest.mark.parametrize("basis", BASES)
def test_equals_algorithm_1(basis: str, gate: str, rank: int) -> None:
    if gate not in SHARES:
        pytest.fail(f"add the formula of the gate '{gate}' to SHARES, as oracle of its forward")
    torch.manual_seed(rank)
    edge_index, x = random_graph(N, 0.2, 0), torch.randn(N, CHANNELS)
    conv = NFConv(CHANNELS, K=5, rank=rank, basis=basis, gate=gate, init="random")
    torch.nn.init.normal_(conv.gate.gamma)  # no two base filters alike
    out, psi = conv(x, edge_index, return_coefficients=True)
    expected_out, expected_psi = algorithm_1(conv, gate, x, edge_index)
    scale = expected_out.abs().max().clamp(min=1)
    torch.testing.assert_close(out.double() / scale, expected_out / scale, rtol=0, atol=1e-5)
    torch.testing.assert_close(psi.double(), expected_psi, rtol=1e-4, atol=1e-5)
    assert torch.linalg.matrix_rank(psi.double(), rtol=1e-4) <= rank or gate != "input"


@pytest.mark.parametrize("gate", ROWWISE)
def test_gradients(gate: str) -> None:
    torch.manual_seed(0)
    conv = NFConv(2, K=3, rank=2, gate=gate).double()
    edge_index = random_graph(10, 0.5, 0)
    x = torch.randn(10, 2, dtype=torch.float64, requires_grad=True)
    names, values = zip(*conv.named_parameters())

    def call(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(conv, dict(zip(names, parameters)), (x, edge_index))

    assert torch.autograd.gradcheck(call, (x, *values))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_relabelling_nodes_permutes_the_output(seed: int) -> None:
    torch.manual_seed(seed)
    edge_index, x = random_graph(N, 0.2, seed), torch.randn(N, CHANNELS)
    conv = NFConv(CHANNELS, K=4, rank=2)
    order = torch.randperm(N)
    inverse = torch.argsort(order)
    torch.testing.assert_close(
        conv(x[order], inverse[edge_index]), conv(x, edge_index)[order], rtol=1e-4, atol=1e-5
    )


@given(seed=st.integers(0, 10_000), basis=st.sampled_from(list(BASES)))
@settings(max_examples=20, deadline=None)
def test_what_lies_beyond_K_hops_does_not_matter(seed: int, basis: str) -> None:
    K, generator = 3, torch.Generator().manual_seed(seed)
    path = torch.arange(12)
    edges = torch.stack([path[:-1], path[1:]])
    # Node 0 is one end of a path. Nodes from 5 on are beyond K hops, and so are all degrees
    # that the result within K hops depends on.
    far = torch.randint(5, 12, (2, 6), generator=generator)
    far = far[:, far[0] != far[1]]
    changed = torch.cat([edges, far], 1)
    x = torch.randn(12, CHANNELS, generator=generator)
    other = x.clone()
    other[K + 1 :] = torch.randn(12 - K - 1, CHANNELS, generator=generator)
    conv = NFConv(CHANNELS, K=K, rank=2, basis=basis)
    undirected = [torch.cat([e, e.flip(0)], 1) for e in (edges, changed)]
    torch.testing.assert_close(
        conv(x, undirected[0])[0], conv(other, undirected[1])[0], rtol=1e-5, atol=1e-6
    )
    other[K] += 1  # at exactly K hops it does matter
    assert not torch.allclose(conv(x, undirected[0])[0], conv(other, undirected[1])[0])


@pytest.mark.parametrize("gate", ["term", "input"])
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("rank", [1, 3])
def test_every_node_starts_at_the_initial_response(basis: str, gate: str, rank: int) -> None:
    conv = NFConv(CHANNELS, K=6, rank=rank, basis=basis, gate=gate, init="low-pass")
    torch.nn.init.zeros_(conv.gate.weight)
    _, psi = conv(torch.randn(N, CHANNELS), random_graph(N, 0.2, 0), return_coefficients=True)
    t = torch.linspace(-1, 1, 21, dtype=torch.float64)
    response = psi.double() @ conv.basis.evaluate(t, 6).T
    torch.testing.assert_close(response, (((1 - t) / 2) ** 2).expand(N, -1), rtol=0, atol=1e-5)


def test_a_constant_gate_is_a_global_filter() -> None:
    from nfgnn.nn import PolyConv

    for basis in BASES:
        nf, poly = (
            cls(*a, K=6, basis=basis, init="ppr", alpha=0.2)
            for cls, a in ((NFConv, (CHANNELS,)), (PolyConv, ()))
        )
        torch.nn.init.zeros_(nf.gate.weight)
        x, edge_index = torch.randn(N, CHANNELS), random_graph(N, 0.2, 0)
        torch.testing.assert_close(nf(x, edge_index), poly(x, edge_index), rtol=1e-4, atol=1e-5)


def test_reset_parameters_draws_anew_and_starts_again() -> None:
    conv = NFConv(CHANNELS, K=3)
    gamma, weight = conv.gate.gamma.clone(), conv.gate.weight.clone()
    torch.nn.init.zeros_(conv.gate.gamma)
    conv.reset_parameters()
    torch.testing.assert_close(conv.gate.gamma, gamma)
    assert not torch.equal(conv.gate.weight, weight)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"K": -1}, "K = -1 is not valid"),
        ({"K": 2.5}, "K = 2.5 is not valid"),
        ({"lambda_max": 0}, "lambda_max = 0 is not valid: pass a positive number"),
        ({"rank": 0}, "rank = 0 is not valid"),
        ({"rank": "2"}, "rank = '2' is not valid"),
        ({"gate": None}, "gate = None is not a name"),
        ({"gate": "magic"}, "unknown gate 'magic': choose one of term"),
        ({"activation": "step"}, "unknown activation 'step'"),
        ({"gate": "agreement"}, "needs a rank of 2 or more"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        NFConv(CHANNELS, **arguments)


def test_repr() -> None:
    assert repr(NFConv(7, basis="jacobi(1, 2)")) == "NFConv(7, K=10, rank=1, basis=jacobi(1, 2))"
