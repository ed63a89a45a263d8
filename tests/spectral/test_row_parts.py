"""The parts of a row besides its terms, against dense products with the adjacency matrix."""

import pytest
import torch
from conftest import random_graph
from torch import Tensor
from torch.nn.functional import normalize

import nfgnn.spectral.neighbour_agreement as agreement_module
import nfgnn.spectral.two_hop_hashing as two_hop_module
from nfgnn.spectral import (
    NeighbourLists,
    RowParts,
    neighbour_cosine,
    parts_of_graph,
    scaled_laplacian,
    two_hop_sketch,
)
from nfgnn.spectral.neighbour_hashing import hash_nodes

N = 40
COLUMNS = 11


def graph(self_loops: bool = False) -> tuple[Tensor, NeighbourLists]:
    """Return a dense adjacency matrix and the lists; node 3 has no neighbours, 5 and 6 a pair."""
    edge_index = random_graph(N, 0.12, 0)
    alone = torch.isin(edge_index, torch.tensor([3, 5, 6])).any(0)
    pair = torch.tensor([[5, 6], [6, 5]])
    edge_index = torch.cat([edge_index[:, ~alone], pair], 1)
    dense = torch.zeros(N, N, dtype=torch.float64)
    dense[edge_index[0], edge_index[1]] = 1.0
    operator = scaled_laplacian(edge_index, None, N, self_loops)
    return dense, NeighbourLists.of(torch.arange(N), operator.indptr, operator.indices)


def dense_two_hop(dense: Tensor) -> Tensor:
    """Add up the sketches of the neighbours of every node, after removing the node from them."""
    n = len(dense)
    column, sign = hash_nodes(torch.arange(n), COLUMNS)
    hashes = torch.zeros(n, COLUMNS, dtype=torch.float64)
    hashes[torch.arange(n), column] = sign
    length = (dense @ hashes).norm(dim=1).clamp(min=1.0)
    rows = []
    for i in range(n):
        others = dense.clone()
        others[:, i] = 0.0
        rows.append((dense[i] / length) @ others @ hashes)
    found = torch.stack(rows)
    found[found.abs() < 1e-12] = 0.0
    return normalize(found).float()


@pytest.mark.parametrize("self_loops", [False, True])
def test_two_hop_sketches_equal_a_dense_product(
    self_loops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_hop_module, "_PIECE_VALUES", 4 * N)  # blocks of four columns
    dense, lists = graph(self_loops)
    found = two_hop_sketch(lists, COLUMNS)
    torch.testing.assert_close(found, dense_two_hop(dense))
    # The only two-hop neighbour of a node in a pair is the node itself.
    assert not found[[3, 5, 6]].any()


def test_the_cosine_is_the_mean_over_the_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement_module, "_PIECE_VALUES", 30)
    dense, lists = graph(self_loops=True)
    x = torch.randn(N, 6, generator=torch.Generator().manual_seed(0))
    x[8] = 0.0
    expected = []
    for i in range(N):
        neighbours = dense[i].nonzero().flatten()
        cosines = torch.cosine_similarity(x[i : i + 1].double(), x[neighbours].double())
        expected.append(cosines.mean() if len(neighbours) else torch.tensor(0.0).double())
    torch.testing.assert_close(neighbour_cosine(lists, x), torch.stack(expected))


def test_parts_follow_each_other_in_the_order_of_their_columns() -> None:
    dense, lists = graph()
    edge_index = dense.nonzero().T
    x = torch.randn(N, 6, generator=torch.Generator().manual_seed(1))
    parts = RowParts(sketch=7, two_hop=COLUMNS, degree=True, agreement=True)
    operator = scaled_laplacian(edge_index, torch.full((edge_index.shape[1],), 2.5), N)
    found = parts_of_graph(parts, x, operator)
    assert list(parts.columns.items()) == [
        *(("sketch", 7), ("two_hop", COLUMNS), ("degree", 1), ("agreement", 1)),
    ]
    assert found.shape == (N, parts.width)
    torch.testing.assert_close(found[:, 7 : 7 + COLUMNS], dense_two_hop(dense))
    torch.testing.assert_close(found[:, -2], (1 + dense.sum(1)).log().float())
    torch.testing.assert_close(found[:, -1], neighbour_cosine(lists, x).float())


def test_missing_parts_are_those_of_another_size() -> None:
    wanted = RowParts(sketch=8, degree=True)
    assert wanted.missing_in(RowParts(sketch=8, degree=True, agreement=True)) == []
    assert wanted.missing_in(RowParts(sketch=9)) == ["sketch", "degree"]
