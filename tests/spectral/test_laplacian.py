import gc
import math

import pytest
import torch
from conftest import random_graph
from helpers.dense import adjacency, normalised
from helpers.dense import scaled_laplacian as dense_laplacian

from nfgnn.errors import UserError
from nfgnn.spectral import laplacian as module
from nfgnn.spectral import scaled_laplacian


def weighted(edge_index: torch.Tensor) -> torch.Tensor:
    low, high = edge_index.min(0).values, edge_index.max(0).values
    return (1 + (low * 7 + high * 3) % 5).double() / 2


@pytest.mark.parametrize("lambda_max", [2.0, 1.5])
def test_the_operator_is_the_scaled_laplacian(lambda_max: float) -> None:
    edge_index = random_graph(30, 0.2, 0)
    weight = weighted(edge_index)
    operator = scaled_laplacian(edge_index, weight, 30, lambda_max=lambda_max)
    identity = torch.eye(30, dtype=torch.float64)
    expected = dense_laplacian(edge_index, 30, lambda_max, weight)
    torch.testing.assert_close(operator @ identity, expected)
    torch.testing.assert_close(operator @ identity.float(), expected.float())


def test_self_loops_are_those_of_gcn() -> None:
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    from torch_geometric.utils import to_dense_adj

    edge_index = random_graph(30, 0.2, 1)
    index, weight = gcn_norm(edge_index, num_nodes=30)
    expected = to_dense_adj(index, edge_attr=weight, max_num_nodes=30)[0]
    ours = (
        scaled_laplacian(edge_index, num_nodes=30, self_loops=True)
        .adjacency(torch.float32)
        .tensor.to_dense()
    )
    torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("has_weights", [False, True])
def test_an_operator_knows_its_graph_with_and_without_self_loops(has_weights: bool) -> None:
    edge_index = random_graph(30, 0.2, 1)
    weight = weighted(edge_index) if has_weights else None
    plain = scaled_laplacian(edge_index, weight, 30)
    looped = scaled_laplacian(edge_index, weight, 30, self_loops=True)
    identity = torch.eye(30, dtype=torch.float64)
    torch.testing.assert_close(plain.with_self_loops(True) @ identity, looped @ identity)
    torch.testing.assert_close(looped.with_self_loops(False) @ identity, plain @ identity)
    assert plain.with_self_loops(False) is plain
    assert plain.with_self_loops(True) is plain.with_self_loops(True)


def test_repeated_edges_add_up_and_loops_are_dropped() -> None:
    edge_index = torch.tensor([[0, 1, 0, 1, 1, 2, 2], [1, 0, 1, 0, 2, 1, 2]])
    A = torch.tensor([[0, 2.0, 0], [2, 0, 1], [0, 1, 0]]).double()
    ours = scaled_laplacian(edge_index, num_nodes=3).adjacency(torch.float64).tensor.to_dense()
    torch.testing.assert_close(ours, normalised(A))


def test_an_isolated_node_has_a_zero_row() -> None:
    ours = (
        scaled_laplacian(random_graph(20, 0.3, 0), num_nodes=20)
        .adjacency(torch.float64)
        .tensor.to_dense()
    )
    assert not ours[0].any()
    assert not ours[:, 0].any()


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_eigenvalue_is_estimated_from_above(seed: int) -> None:
    edge_index = random_graph(60, 0.15, seed)
    exact = 1 - torch.linalg.eigvalsh(normalised(adjacency(edge_index, 60)))[0]
    estimate = scaled_laplacian(edge_index, num_nodes=60, lambda_max="estimate").lambda_max
    assert -1e-9 <= estimate - float(exact) < 1e-5


def test_built_once_for_the_same_tensors_and_anew_for_changed_ones() -> None:
    edge_index = random_graph(20, 0.3, 0)
    first = scaled_laplacian(edge_index, num_nodes=20)
    assert scaled_laplacian(edge_index, num_nodes=20) is first
    assert scaled_laplacian(edge_index, num_nodes=21) is not first
    assert scaled_laplacian(edge_index.clone(), num_nodes=20) is not first
    weight = torch.ones(edge_index.shape[1])
    unweighted = scaled_laplacian(edge_index, weight, 20)
    edge = (edge_index[0] == edge_index[0, 0]) & (edge_index[1] == edge_index[1, 0])
    weight[edge | ((edge_index[1] == edge_index[0, 0]) & (edge_index[0] == edge_index[1, 0]))] = 9.0
    changed = scaled_laplacian(edge_index, weight, 20)
    assert changed is not unweighted
    assert not torch.equal(changed.scale, unweighted.scale)


def test_the_cache_forgets_graphs_that_are_gone() -> None:
    gc.collect()
    before = len(module._CACHE)
    edge_index = random_graph(20, 0.3, 0)
    scaled_laplacian(edge_index, num_nodes=20)
    assert len(module._CACHE) == before + 1
    del edge_index
    gc.collect()
    assert len(module._CACHE) == before


def test_it_works_inside_inference_mode() -> None:
    with torch.inference_mode():
        operator = scaled_laplacian(random_graph(20, 0.3, 0), num_nodes=20)
    assert operator.num_nodes == 20


@pytest.mark.parametrize(
    ("edges", "weight", "n", "lambda_max", "message"),
    [
        ([[0, 1], [1, 2]], None, 3, 2.0, "both directions"),
        ([[0, 1], [1, 0]], [1.0, 2.0], 2, 2.0, "equal weight"),
        ([[0, 1], [1, 0]], [-1.0, -1.0], 2, 2.0, "must not be negative"),
        ([[0, 5], [5, 0]], None, 3, 2.0, "outside of 0…2"),
        ([[0, 1], [1, 0]], [math.nan, math.nan], 2, 2.0, "NaN or infinite"),
        ([[0, 1], [1, 0]], [math.inf, math.inf], 2, 2.0, "NaN or infinite"),
        ([[0, 1], [1, 0]], None, 2, 0.0, "lambda_max = 0.0 is not valid: pass a positive"),
        ([[0, 1], [1, 0]], None, 2, math.nan, "lambda_max = nan is not valid: pass a positive"),
        ([[0, 1], [1, 0]], None, 2, "largest", "lambda_max = 'largest' is not valid: pass a posit"),
        ([[0, 1], [1, 0]], None, 2, "2", "lambda_max = '2' is not valid: pass a positive number"),
        ([[0, 1], [1, 0]], None, 2, None, "lambda_max = None is not valid: pass a positive number"),
    ],
)
def test_graphs_without_a_spectrum_are_refused(edges, weight, n, lambda_max, message) -> None:
    weight = None if weight is None else torch.tensor(weight)
    with pytest.raises(UserError, match=message):
        scaled_laplacian(torch.tensor(edges), weight, n, lambda_max=lambda_max)


@pytest.mark.parametrize("has_weights", [False, True])
def test_the_operator_of_a_graph_in_32_bits(has_weights: bool) -> None:
    """Places of entries are numbered up to n², which 32 bits do not hold."""
    n = 70_000
    chain = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    edge_index = torch.cat([chain, chain.flip(0)], 1)
    weight = weighted(edge_index) if has_weights else None
    wide = scaled_laplacian(edge_index, weight, n)
    narrow = scaled_laplacian(edge_index.int(), weight, n)
    for name in ("indptr", "indices", "scale"):
        assert torch.equal(getattr(wide, name), getattr(narrow, name))
