"""Edge lists with duplicates and single directions, against a dense matrix as oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfgnn.data.edges import MAX_NODES, check_weights, undirected
from nfgnn.errors import UserError

NODES = 7
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=40)


def as_arrays(edges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


@settings(max_examples=150, deadline=None)
@given(EDGES)
def test_equals_the_dense_matrix(edges: list[tuple[int, int]]) -> None:
    source, target = as_arrays(edges)
    edge_index, weight, _ = undirected(source, target, NODES)
    dense = np.zeros((NODES, NODES), dtype=bool)
    dense[source, target] = dense[target, source] = True
    np.fill_diagonal(dense, False)
    assert weight is None
    assert np.array_equal(edge_index, np.stack(np.nonzero(dense)))  # sorted by row, then column


@settings(max_examples=100, deadline=None)
@given(EDGES, st.integers(0, 2**32 - 1))
def test_weights_are_summed_by_direction_and_averaged_over_both(
    edges: list[tuple[int, int]], seed: int
) -> None:
    source, target = as_arrays(edges)
    given_weight = np.random.default_rng(seed).integers(1, 9, len(edges)).astype(float)
    edge_index, weight, _ = undirected(source, target, NODES, given_weight)
    total = np.zeros((NODES, NODES))
    np.add.at(total, (source, target), given_weight)
    np.fill_diagonal(total, 0)
    both = (total + total.T) / np.maximum((total > 0).astype(int) + (total.T > 0), 1)
    assert weight is not None
    assert np.array_equal(edge_index, np.stack(np.nonzero(both)))
    assert np.allclose(weight, both[edge_index[0], edge_index[1]])


def test_changes_are_reported() -> None:
    source, target = as_arrays([(0, 1), (0, 1), (1, 0), (1, 2), (3, 3)])
    *_, notes = undirected(source, target, 5)
    assert notes == [
        "dropped 1 self-loop",
        "merged 1 duplicate edge",
        "added the reverse of 1 directed edge",
    ]
    *_, notes = undirected(*as_arrays([(0, 1), (2, 1)]), 3)
    assert notes == ["read 2 edges as undirected"]
    *_, notes = undirected(*as_arrays([(0, 1), (1, 0)]), 3)
    assert notes == []
    *_, notes = undirected(
        *as_arrays([(0, 1), (1, 0), (1, 2), (2, 1)]), 3, np.array([1.0, 1.0, 0.0, 0.0])
    )
    assert notes == ["dropped 2 edges with weight 0"]


def test_node_numbers_beyond_32_bits_do_not_overflow() -> None:
    # 2 · n² is far beyond 32 bits; a product of int32 node numbers would wrap around.
    n = 100_000
    source, target = (
        np.array([n - 1, 0, 70_000], dtype=np.int32),
        np.array([n - 2, n - 1, 80_000], dtype=np.int32),
    )
    edge_index, *_ = undirected(source, target, n)
    expected = [[0, 70_000, 80_000, n - 2, n - 1, n - 1], [n - 1, 80_000, 70_000, n - 1, 0, n - 2]]
    assert edge_index.tolist() == expected


def test_more_nodes_than_can_be_indexed_are_refused() -> None:
    with pytest.raises(UserError, match="at most"):
        undirected(np.array([0]), np.array([1]), MAX_NODES + 1)


def test_weights_that_vanish_in_float32_are_dropped_and_noted() -> None:
    ends = np.array([0, 1, 2]), np.array([1, 2, 3])
    edge_index, weight, notes = undirected(*ends, 4, np.array([1.0, 1e-300, 0.0]))
    assert edge_index.tolist() == [[0, 1], [1, 0]]
    assert weight is not None
    assert weight.tolist() == [1.0, 1.0]
    assert "dropped 1 edge with weight 0" in notes
    assert "dropped 1 edge whose weight is 0 in float32" in notes


def test_a_sum_of_weights_beyond_float32_is_refused() -> None:
    ends = np.array([0, 0]), np.array([1, 1])
    with pytest.raises(UserError, match=r"add up to 6e\+38"):
        undirected(*ends, 2, np.array([3e38, 3e38]))


@pytest.mark.parametrize("weight", [-1.0, 1e39, np.inf, np.nan])
def test_weights_out_of_range_are_refused(weight: float) -> None:
    with pytest.raises(UserError, match="here: the weight of edge 1"):
        check_weights(np.array([1.0, weight]), 2, "here")
