"""Edges that are sorted on disk equal edges that are sorted in memory."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfgnn.data.edges import undirected
from nfgnn.data.external_sort import undirected_on_disk

NODES = 7
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=40)


@settings(max_examples=40, deadline=None)
@given(EDGES, st.integers(1, 20))
def test_on_disk_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[int, int]], block: int
) -> None:
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    target = tmp_path_factory.mktemp("edges") / "edges.npy"
    undirected_on_disk(edges, NODES, target, block=block)
    expected, *_ = undirected(edges[0], edges[1], NODES)
    assert np.array_equal(np.load(target), expected)
    assert list(target.parent.iterdir()) == [target]


def test_on_disk_many_buckets(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 300_000, (2, 20_000))
    target = tmp_path / "edges.npy"
    undirected_on_disk(edges, 300_000, target, block=1000)
    expected, *_ = undirected(edges[0], edges[1], 300_000)
    assert np.array_equal(np.load(target), expected)
