"""Edges that are sorted on disk equal edges that are sorted in memory."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfgnn.data.edges import undirected
from nfgnn.data.external_sort import csr_on_disk, undirected_on_disk
from nfgnn.errors import UserError

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


WEIGHTS = st.one_of(st.floats(0.1, 1.0), st.sampled_from([0.0, 1e-60, 1.0, 3e7]))


@settings(max_examples=60, deadline=None)
@given(EDGES, st.data(), st.integers(1, 9), st.booleans())
def test_weights_on_disk_are_those_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: list[tuple[int, int]],
    drawn: st.DataObject,
    block: int,
    all_ones: bool,
) -> None:
    """Sums and means of repeated edges round alike, whatever the blocks and buckets."""
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    listed = [1.0 if all_ones else drawn.draw(WEIGHTS) for _ in pairs]
    weight = np.array(listed)
    folder = tmp_path_factory.mktemp("edges")

    def blocks(size: int) -> Iterator[tuple[np.ndarray, ...]]:
        for first in range(0, len(pairs), block):
            part = slice(first, first + block)
            yield edges[0, part], edges[1, part], weight[part]

    csr_on_disk(blocks, NODES, folder, memory=600, weighted=True)
    expected, merged, _ = undirected(edges[0], edges[1], NODES, weight)
    assert np.array_equal(np.load(folder / "indices.npy"), expected[1])
    counts = np.bincount(expected[0], minlength=NODES)
    assert np.array_equal(np.diff(np.load(folder / "indptr.npy")), counts)
    assert (folder / "weight.npy").is_file() == bool((merged != 1).any())
    if (folder / "weight.npy").is_file():
        assert np.array_equal(np.load(folder / "weight.npy"), merged)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, 2.0, -1.0], r"the weight of edge 2 \(counted from 0\) is -1.0"),
        ([1.0, 2.0, np.nan], r"the weight of edge 2 \(counted from 0\) is nan"),
        ([3e38, 3e38, 1.0], "add up to 6e"),
    ],
)
def test_invalid_weights_are_rejected(weight: list[float], message: str, tmp_path: Path) -> None:
    def blocks(size: int) -> Iterator[tuple[np.ndarray, ...]]:
        for i in range(3):
            yield np.array([0]), np.array([1]), np.array(weight[i : i + 1])

    with pytest.raises(UserError, match=message):
        csr_on_disk(blocks, 3, tmp_path, weighted=True)
